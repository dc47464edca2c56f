//! Where things are by default: Java's `user.home`, `ROCKETMQ_HOME`, the host's name and address.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// A path in the home folder of the user, e.g. `user_home("store")`. Without `HOME` it is relative to the working folder.
pub fn user_home(path: &str) -> String {
    match std::env::var("HOME") {
        Ok(home) if !home.is_empty() => format!("{}/{path}", home.trim_end_matches('/')),
        _ => path.to_string(),
    }
}

/// A variable of the environment; empty counts as unset.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_string()).filter(|value| !value.is_empty())
}

/// The name of this host, which is the default of `brokerName`.
pub fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "DEFAULT_BROKER".to_string() } else { name }
}

/// The address that packets to the outside leave from, IPv4 first; loopback if there is no network.
pub fn local_ip() -> IpAddr {
    // connecting a datagram socket sends nothing, it only asks the routing table
    let routes = [("0.0.0.0:0", "192.0.2.1:9"), ("0.0.0.0:0", "10.255.255.255:9"), ("[::]:0", "[2001:db8::1]:9")];
    routes
        .into_iter()
        .filter_map(|(from, to)| {
            let socket = UdpSocket::bind(from).ok()?;
            socket.connect(to).ok()?;
            Some(socket.local_addr().ok()?.ip())
        })
        .find(|ip| !ip.is_loopback() && !ip.is_unspecified())
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Number of processors this process may use.
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}
