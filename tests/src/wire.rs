//! A connection that asks one thing at a time, blocking: what a test needs to play exact sequences.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::BytesMut;
use protocol::Command;
use protocol::frame::decode;

/// Answers longer than a frame may be are read, too: servers send them.
const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    input: BytesMut,
    opaque: i32,
}

impl Wire {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self { stream, input: BytesMut::new(), opaque: 0 })
    }

    pub fn send(&mut self, request: &Command) -> Result<i32> {
        let mut request = request.clone();
        self.opaque += 1;
        request.opaque = self.opaque;
        let mut out = BytesMut::new();
        request.encode(&mut out);
        self.stream.write_all(&out)?;
        Ok(self.opaque)
    }

    /// Sends several requests with one write; returns their opaques.
    pub fn send_all(&mut self, requests: &[Command]) -> Result<Vec<i32>> {
        let mut out = BytesMut::new();
        let mut opaques = Vec::with_capacity(requests.len());
        for request in requests {
            let mut request = request.clone();
            self.opaque += 1;
            request.opaque = self.opaque;
            request.encode(&mut out);
            opaques.push(self.opaque);
        }
        self.stream.write_all(&out)?;
        Ok(opaques)
    }

    pub fn ask(&mut self, request: &Command) -> Result<Command> {
        let opaque = self.send(request)?;
        loop {
            let answer = self.read()?;
            if answer.opaque == opaque && answer.is_response() {
                return Ok(answer);
            }
        }
    }

    /// The next frame, whatever it is.
    pub fn read(&mut self) -> Result<Command> {
        loop {
            if let Some(frame) = decode(&mut self.input, LONGEST_ANSWER)? {
                return Ok(frame);
            }
            let mut chunk = [0; 64 * 1024];
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                bail!("closed by the server");
            }
            self.input.extend_from_slice(&chunk[..read]);
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}
