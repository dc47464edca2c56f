//! What a connection is, told from its first bytes: PROXY header, TLS, frames.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::net::TcpStream;

use crate::proxy_protocol::{self, Parsed, ProxyInfo};
use crate::{CloseReason, TlsMode, buffer_pool};

/// The content type of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

pub(crate) enum Kind {
    Plain,
    Tls,
}

/// What the first bytes told; `input` holds those that belong to the frames or to the TLS handshake.
pub(crate) struct Start {
    pub(crate) kind: Kind,
    pub(crate) input: BytesMut,
    pub(crate) proxy: Option<ProxyInfo>,
}

/// Reads until the kind of the connection is known.
pub(crate) async fn read_start(stream: &TcpStream, mode: TlsMode, allow_proxy: bool) -> Result<Start, CloseReason> {
    let mut input = BytesMut::new();
    let mut proxy = None;
    loop {
        if allow_proxy && proxy.is_none() {
            match proxy_protocol::parse(&input) {
                Parsed::NeedMore => {
                    read_more(stream, &mut input).await?;
                    continue;
                }
                Parsed::Invalid(why) => return Err(CloseReason::BadStart(why)),
                Parsed::NotProxy => {}
                Parsed::Header(length, info) => {
                    input.advance(length);
                    proxy = Some(info);
                }
            }
        }
        let kind = match (input.first(), mode) {
            (None, _) => {
                read_more(stream, &mut input).await?;
                continue;
            }
            (Some(&TLS_HANDSHAKE), TlsMode::Disabled) => return Err(CloseReason::BadStart("TLS is disabled")),
            (Some(&TLS_HANDSHAKE), _) => Kind::Tls,
            (Some(_), TlsMode::Enforcing) => return Err(CloseReason::BadStart("TLS is demanded")),
            (Some(_), _) => Kind::Plain,
        };
        return Ok(Start { kind, input, proxy });
    }
}

/// Appends what there is to read. Holds no buffer while it waits.
async fn read_more(stream: &TcpStream, input: &mut BytesMut) -> Result<(), CloseReason> {
    loop {
        stream.readable().await.map_err(|error| CloseReason::io(&error))?;
        let mut buffer = buffer_pool::take_read();
        let result = stream.try_read_buf(&mut buffer);
        input.extend_from_slice(&buffer);
        buffer_pool::give_read(buffer);
        match result {
            Ok(0) => return Err(CloseReason::PeerClosed),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(CloseReason::io(&error)),
        }
    }
}
