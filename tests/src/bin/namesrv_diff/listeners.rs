//! The brokers' own ports: they take the notices of a smallest broker id from both name servers.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::BytesMut;
use protocol::{Command, Language};

/// How often each notice came: from ours, from Java's.
type Notices = BTreeMap<String, (usize, usize)>;

pub(crate) struct Listeners {
    pub addrs: Vec<String>,
    notices: Arc<Mutex<Notices>>,
    pub lost_by_java: usize,
}

impl Listeners {
    pub(crate) fn start(first_port: u16, count: usize) -> Result<Self> {
        let notices = Arc::new(Mutex::new(Notices::new()));
        let mut addrs = Vec::new();
        for port in (first_port..).take(count) {
            let addr = format!("127.0.0.1:{port}");
            let listener = TcpListener::bind(&addr)?;
            addrs.push(addr.clone());
            let notices = notices.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let (addr, notices) = (addr.clone(), notices.clone());
                    std::thread::spawn(move || take(stream, &addr, &notices));
                }
            });
        }
        Ok(Self { addrs, notices, lost_by_java: 0 })
    }

    /// Waits until both have told the same. Java gives a notice up when it has not left within 300 ms, which happens on a
    /// busy machine: such notices are counted, and more than one in fifty is a failure.
    pub(crate) fn agree(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let differs = {
                let notices = self.notices.lock().map_err(|_| anyhow::anyhow!("a listener failed"))?;
                let odd = notices.iter().find(|(_, (ours, java))| ours != java);
                odd.map(|(notice, counts)| format!("{notice}: ours and Java's {counts:?}"))
            };
            match differs {
                None => return Ok(()),
                Some(_) if Instant::now() > deadline && self.forgive() => return Ok(()),
                Some(differs) if Instant::now() > deadline => bail!("notices differ: {differs}"),
                Some(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn forgive(&mut self) -> bool {
        let seen = self.seen();
        let Ok(mut notices) = self.notices.lock() else {
            return false;
        };
        for (ours, java) in notices.values_mut() {
            if java > ours {
                return false;
            }
            self.lost_by_java += *ours - *java;
            *java = *ours;
        }
        self.lost_by_java <= 1 + seen / 50
    }

    pub(crate) fn seen(&self) -> usize {
        self.notices.lock().map_or(0, |notices| notices.values().map(|(ours, _)| ours).sum())
    }
}

fn take(mut stream: TcpStream, addr: &str, notices: &Mutex<Notices>) {
    let mut input = BytesMut::new();
    let mut chunk = [0; 4096];
    while let Ok(read) = stream.read(&mut chunk)
        && read > 0
    {
        input.extend_from_slice(&chunk[..read]);
        while let Ok(Some(notice)) = protocol::frame::decode(&mut input, 1 << 20) {
            note(&notice, addr, notices);
        }
    }
}

fn note(notice: &Command, addr: &str, notices: &Mutex<Notices>) {
    let mut fields: Vec<String> = notice.fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
    fields.sort();
    let text = format!("to {addr}: {} oneway {} {}", notice.code, notice.is_oneway(), fields.join(" "));
    if let Ok(mut notices) = notices.lock() {
        let counts = notices.entry(text).or_default();
        if notice.language == Language::RUST {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
    }
}
