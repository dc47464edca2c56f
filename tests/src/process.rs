//! The servers as an operator runs them: processes with a configuration file, a folder and ports.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Where the release binaries lie: `MQ_BIN_DIR`, or the `release` folder of the target directory these tests run from.
pub fn binary(name: &str) -> Result<PathBuf> {
    let folder = match std::env::var_os("MQ_BIN_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let here = std::env::current_exe()?;
            let target = here.ancestors().nth(3).context("the test does not run from a target folder")?;
            target.join("release")
        }
    };
    let path = folder.join(name);
    if !path.is_file() {
        bail!("{} is missing: run `cargo build --release --workspace --bins` first", path.display());
    }
    Ok(path)
}

/// Below the ports a kernel hands out by itself: one of those may be some connection's own port by the time a killed server
/// asks for its port again.
const PORTS: Range<u16> = 12_000..32_000;

/// Ports given out by this process are not given again while others are left.
static GIVEN: OnceLock<Mutex<u16>> = OnceLock::new();

/// A port nobody listens on now. `below` more ports under it are free as well (a broker also takes its port - 2).
pub fn free_port(below: u16) -> Result<u16> {
    let given = GIVEN.get_or_init(|| Mutex::new(fastrand::u16(PORTS)));
    let mut last = given.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..PORTS.len() {
        let port = if *last + below + 1 < PORTS.end { *last + below + 1 } else { PORTS.start + below };
        *last = port;
        if (0..=below).all(|down| TcpListener::bind(("127.0.0.1", port - down)).is_ok()) {
            return Ok(port);
        }
    }
    bail!("no free ports")
}

/// One running server process; it is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    output: Receiver<String>,
    seen: Vec<String>,
}

impl Server {
    /// Starts `name` with `arguments` and waits for its `boot success` line.
    pub fn start(name: &str, arguments: &[&str], address: SocketAddr, home: &Path) -> Result<Self> {
        let mut command = Command::new(binary(name)?);
        command.args(arguments);
        Self::spawn(command, address, home)
    }

    /// The same for a command that is made up already; its standard error goes to `<program>.stderr` in `home`.
    pub fn spawn(mut command: Command, address: SocketAddr, home: &Path) -> Result<Self> {
        let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let said = home.join(format!("{name}.stderr"));
        let errors = fs::File::create(&said)?;
        let mut child = command
            .env("HOME", home)
            .env_remove("ROCKETMQ_HOME")
            .env_remove("NAMESRV_ADDR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (lines, output) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });
        let mut server = Self { child, address, output, seen: Vec::new() };
        server
            .wait_for_line("boot success", Duration::from_secs(30))
            .with_context(|| fs::read_to_string(&said).unwrap_or_default())?;
        Ok(server)
    }

    /// Waits for a line of standard output that contains `part`.
    pub fn wait_for_line(&mut self, part: &str, limit: Duration) -> Result<String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => bail!("no line with {part:?} in {limit:?}; seen: {:#?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?;
                    bail!("ended with {status} before printing {part:?}; seen: {:#?}", self.seen)
                }
            }
        }
    }

    /// Everything printed so far.
    pub fn output(&mut self) -> &[String] {
        self.seen.extend(self.output.try_iter());
        &self.seen
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True while the process lives.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL, and the process is gone when this returns.
    pub fn kill_nine(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM, then waits for the ordered stop; returns how it ended.
    pub fn stop(mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.wait(limit)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("no pid")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits until the process has ended by itself.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("still runs after {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A name server on a port of its own.
pub fn name_server(home: &Path) -> Result<Server> {
    let port = free_port(0)?;
    let file = home.join("namesrv.properties");
    fs::write(&file, format!("listenPort={port}\nbindAddress=127.0.0.1\n"))?;
    Server::start("mqnamesrv", &["-c", &file.to_string_lossy()], ([127, 0, 0, 1], port).into(), home)
}

/// What a broker is started with; the port and the folder stay the same over restarts.
#[derive(Debug, Clone)]
pub struct BrokerPlan {
    pub port: u16,
    pub home: PathBuf,
    pub name_server: SocketAddr,
    /// Further lines of the configuration file.
    pub extra: String,
}

impl BrokerPlan {
    pub fn new(home: &Path, name_server: SocketAddr, extra: &str) -> Result<Self> {
        Ok(Self { port: free_port(2)?, home: home.to_path_buf(), name_server, extra: extra.to_owned() })
    }

    pub fn store(&self) -> PathBuf {
        self.home.join("store")
    }

    /// Starts and ends by itself, because something is wrong: what it printed, and its exit code.
    pub fn start_in_vain(&self) -> Result<Output> {
        let file = self.write_file()?;
        let mut command = Command::new("timeout");
        command.arg("30").arg(binary("mqbroker")?).arg("-c").arg(file);
        let output = command.env("HOME", &self.home).env_remove("ROCKETMQ_HOME").env_remove("NAMESRV_ADDR").output();
        Ok(output?)
    }

    pub fn start(&self) -> Result<Server> {
        let file = self.write_file()?;
        Server::start("mqbroker", &["-c", &file.to_string_lossy()], ([127, 0, 0, 1], self.port).into(), &self.home)
    }

    fn write_file(&self) -> Result<PathBuf> {
        let file = self.home.join("broker.properties");
        let text = format!(
            "brokerClusterName=DefaultCluster\nbrokerName=broker-a\nbrokerIP1=127.0.0.1\nlistenPort={}\n\
             namesrvAddr={}\nstorePathRootDir={}\n{}\n",
            self.port,
            self.name_server,
            self.store().display(),
            self.extra
        );
        fs::write(&file, text)?;
        Ok(file)
    }
}
