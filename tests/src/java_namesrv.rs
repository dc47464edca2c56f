//! The Java name server beside ours, from a folder of jars.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder with Java's jars: `ROCKETMQ_PEER_LIB`.
pub fn jars() -> Result<PathBuf> {
    let folder = std::env::var_os("ROCKETMQ_PEER_LIB").context(
        "ROCKETMQ_PEER_LIB must name a folder with the jars of RocketMQ 5.4.0 (tests/interop/java/peer collects them)",
    )?;
    Ok(folder.into())
}

/// A Java name server; killed when dropped.
#[derive(Debug)]
pub struct JavaNamesrv {
    child: Child,
    pub address: SocketAddr,
}

impl JavaNamesrv {
    /// Starts one on `port` with `lines` in its properties file. `home` takes its files; `jvm` its options.
    pub fn start(port: u16, lines: &str, home: &Path, jvm: &[&str]) -> Result<Self> {
        let file = home.join("java-namesrv.properties");
        let kv = home.join("java-kv.json");
        std::fs::write(&file, format!("listenPort={port}\nkvConfigPath={}\n{lines}", kv.display()))?;
        let mut child = Command::new("java")
            .args(jvm)
            .arg(format!("-Duser.home={}", home.display()))
            .arg("-Drmq.logback.configurationFile=rmq.namesrv.logback.xml")
            .arg("-cp")
            .arg(jars()?.join("*"))
            .arg("org.apache.rocketmq.namesrv.NamesrvStartup")
            .arg("-c")
            .arg(&file)
            .env("ROCKETMQ_HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(home.join("java.stderr"))?)
            .spawn()
            .context("starting java")?;
        let mut stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut seen = String::new();
        while !seen.contains("boot success") {
            if stdout.read_line(&mut seen)? == 0 {
                bail!("the Java name server did not start: {seen}");
            }
        }
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Ok(Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for JavaNamesrv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
