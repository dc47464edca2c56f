//! A page server: GET /metrics, /healthz and /readyz over HTTP/1.1, one request per connection. Not a web server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::metrics::Registry;

/// Bytes of a request line with all headers.
const MAX_REQUEST: usize = 8 * 1024;
/// Connections served at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 32;
/// From accept to the last byte of the answer.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Says yes, or why not.
pub type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What the pages show.
pub struct Pages {
    pub metrics: Arc<Registry>,
    /// /healthz: does the process work? A supervisor restarts it if not.
    pub healthy: Check,
    /// /readyz: does it take requests? A load balancer leaves it out if not.
    pub ready: Check,
}

/// A running page server. Dropping it closes the port.
#[derive(Debug)]
pub struct PageServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl PageServer {
    /// Listens on `address`, `host:port`.
    pub async fn bind(address: &str, pages: Pages) -> io::Result<PageServer> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, Arc::new(pages)));
        Ok(PageServer { address, accepting })
    }

    /// The bound address, with the port the system chose for 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, pages: Arc<Pages>) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = pages.clone();
                tokio::spawn(async move {
                    // a peer that is gone or too slow is nobody's problem
                    let _ = tokio::time::timeout(MAX_TIME, serve(stream, &pages)).await;
                    drop(permit);
                });
            }
            // out of file descriptors, most likely
            Err(error) => {
                tracing::warn!("page server: accept: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(mut stream: TcpStream, pages: &Pages) -> io::Result<()> {
    let mut request = Vec::with_capacity(1024);
    let answer = loop {
        if request.windows(4).any(|end| end == b"\r\n\r\n") || request.windows(2).any(|end| end == b"\n\n") {
            break answer(&request, pages);
        }
        if request.len() >= MAX_REQUEST {
            break text(431, "the request is too large\n", true);
        }
        let room = (MAX_REQUEST - request.len()) as u64;
        if (&mut stream).take(room).read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    };
    stream.write_all(&answer).await?;
    stream.shutdown().await?;
    // closing with unread bytes would reset the connection and lose the answer
    let mut rest = [0; 1024];
    for _ in 0..64 {
        if stream.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

fn answer(request: &[u8], pages: &Pages) -> Vec<u8> {
    let line = request.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return text(400, "bad request\n", true);
    };
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return text(400, "bad request\n", true);
    }
    let with_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return text(405, "only GET\n", true),
    };
    let check = |check: &Check| match check() {
        Ok(()) => text(200, "ok\n", with_body),
        Err(why) => text(503, &format!("{why}\n"), with_body),
    };
    match target.split('?').next() {
        Some("/metrics") => text(200, &pages.metrics.render(), with_body),
        Some("/healthz") => check(&pages.healthy),
        Some("/readyz") => check(&pages.ready),
        _ => text(404, "try /metrics, /healthz or /readyz\n", with_body),
    }
}

fn text(status: u16, body: &str, with_body: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    let body = if with_body { body } else { "" };
    [head.as_bytes(), body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    async fn server(ready: Arc<AtomicBool>) -> PageServer {
        let metrics = Arc::new(Registry::new());
        metrics.counter("seen_total", "Seen.", &[]).add(7);
        let ready: Check = Box::new(move || match ready.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err("recovering".to_string()),
        });
        let pages = Pages { metrics, healthy: Box::new(|| Ok(())), ready };
        PageServer::bind("127.0.0.1:0", pages).await.unwrap()
    }

    async fn ask(server: &PageServer, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn get(server: &PageServer, target: &str) -> (u16, String) {
        let answer = ask(server, format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        (head[9..12].parse().unwrap(), body.to_string())
    }

    #[tokio::test]
    async fn the_pages() {
        let ready = Arc::new(AtomicBool::new(false));
        let server = server(ready.clone()).await;
        let (status, page) = get(&server, "/metrics?x=1").await;
        assert_eq!(status, 200);
        assert!(page.contains("\nseen_total 7\n"), "{page}");
        assert_eq!(get(&server, "/healthz").await, (200, "ok\n".to_string()));
        assert_eq!(get(&server, "/readyz").await, (503, "recovering\n".to_string()));
        ready.store(true, Ordering::SeqCst);
        assert_eq!(get(&server, "/readyz").await.0, 200);
        assert_eq!(get(&server, "/").await.0, 404);
    }

    #[tokio::test]
    async fn odd_requests() {
        let server = server(Arc::default()).await;
        let head = ask(&server, b"HEAD /metrics HTTP/1.0\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(&server, b"POST /metrics HTTP/1.1\r\n\r\n{}").await.starts_with("HTTP/1.1 405 "));
        assert!(ask(&server, b"\x16\x03\x01\n\n").await.starts_with("HTTP/1.1 400 "));
        let mut long = b"GET / HTTP/1.1\r\nX: ".to_vec();
        long.resize(MAX_REQUEST + 100, b'x');
        assert!(ask(&server, &long).await.starts_with("HTTP/1.1 431 "));
    }

    #[tokio::test]
    async fn silent_connections_do_not_shut_others_out_for_long() {
        let server = server(Arc::default()).await;
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(TcpStream::connect(server.local_addr()).await.unwrap());
        }
        drop(silent.pop());
        assert_eq!(get(&server, "/healthz").await.0, 200);
    }

    #[tokio::test]
    async fn dropping_the_server_closes_the_port() {
        let server = server(Arc::default()).await;
        let address = server.local_addr();
        drop(server);
        let closed = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
    }
}
