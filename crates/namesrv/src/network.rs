//! From configuration keys to the remoting crate's settings.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use remoting::{ClientConfig, ServerConfig, TlsSettings};
use service::config::Config;
use service::keys::{NamesrvSettings, TlsSystemConfig};

use crate::StartError;

pub(crate) fn server_config(config: &NamesrvSettings) -> Result<ServerConfig, StartError> {
    let netty = &config.netty;
    let mut server = ServerConfig::new(listen_address(&netty.bind_address, netty.listen_port)?);
    server.backlog = netty.server_socket_backlog.try_into().unwrap_or(i32::MAX);
    server.limits.frame_bytes = config.system.frame_max_length as usize;
    server.limits.idle = Duration::from_secs(netty.server_channel_max_idle_time_seconds.into());
    server.tls = tls_settings(config)?;
    Ok(server)
}

pub(crate) fn client_config(config: &NamesrvSettings) -> Result<ClientConfig, StartError> {
    let tls = tls_settings(config)?;
    let connect_timeout = Duration::from_millis(config.client.connect_timeout_millis.into());
    let tls = (config.client.use_tls || tls.outbound()).then_some(tls);
    Ok(ClientConfig { connect_timeout, tls, ..ClientConfig::default() })
}

fn listen_address(host: &str, port: u16) -> Result<SocketAddr, StartError> {
    let found = (host, port).to_socket_addrs().and_then(|mut found| {
        found.next().ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, "it has no address"))
    });
    found.map_err(|error| StartError::Address { address: host.to_owned(), error })
}

fn tls_settings(config: &NamesrvSettings) -> Result<TlsSettings, StartError> {
    let mut tls = TlsSettings::default();
    for key in TlsSystemConfig::keys() {
        if let Some(value) = config.tls.get(key.name) {
            tls.set(key.name, &value).map_err(StartError::Tls)?;
        }
    }
    Ok(tls)
}
