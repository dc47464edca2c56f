//! The two message ids: the broker's, which names a place in a commit log, and the client's, which is merely unique.
//! Both are 32 or 56 hexadecimal digits and cannot be told apart by their looks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A broker's message id: store host and physical offset, in upper-case hexadecimal. Held without an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MessageId {
    text: [u8; 56],
    length: u8,
}

impl MessageId {
    pub fn new(store_host: SocketAddr, physical_offset: i64) -> Self {
        let mut id = Self { text: [b'0'; 56], length: 0 };
        match store_host.ip() {
            IpAddr::V4(ip) => id.push(&ip.octets()),
            IpAddr::V6(ip) => id.push(&ip.octets()),
        }
        id.push(&u32::from(store_host.port()).to_be_bytes());
        id.push(&physical_offset.to_be_bytes());
        id
    }

    pub fn as_str(&self) -> &str {
        // Only hexadecimal digits were pushed.
        std::str::from_utf8(&self.text[..usize::from(self.length)]).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let at = usize::from(self.length);
            self.text[at] = DIGITS[usize::from(byte >> 4)];
            self.text[at + 1] = DIGITS[usize::from(byte & 15)];
            self.length += 2;
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

impl std::fmt::Display for MessageId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.as_str())
    }
}

impl std::fmt::Debug for MessageId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Reads a broker's message id: the host it is stored at and its physical offset.
pub fn decode_message_id(text: &str) -> Option<(SocketAddr, i64)> {
    let mut bytes = [0u8; 28];
    let bytes = hex(text, &mut bytes)?;
    let (address, rest) = bytes.split_at_checked(bytes.len().checked_sub(12)?)?;
    let (port, offset) = rest.split_first_chunk::<4>()?;
    let port = u16::try_from(u32::from_be_bytes(*port)).ok()?;
    Some((SocketAddr::new(ip(address)?, port), i64::from_be_bytes(*offset.first_chunk()?)))
}

/// A client-made message id (property `UNIQ_KEY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniqueKey {
    pub ip: IpAddr,
    /// The low 16 bits of the process id.
    pub process: u16,
    /// A number that tells processes with one id apart; Java takes the hash of its class loader.
    pub salt: u32,
    /// Milliseconds since the start of the month the id was made in.
    pub millis_of_month: i32,
    pub counter: u16,
}

impl UniqueKey {
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0u8; 28];
        let bytes = hex(text, &mut bytes)?;
        let (address, rest) = bytes.split_at_checked(bytes.len().checked_sub(12)?)?;
        let rest = rest.first_chunk::<12>()?;
        Some(Self {
            ip: ip(address)?,
            process: u16::from_be_bytes([rest[0], rest[1]]),
            salt: u32::from_be_bytes([rest[2], rest[3], rest[4], rest[5]]),
            millis_of_month: i32::from_be_bytes([rest[6], rest[7], rest[8], rest[9]]),
            counter: u16::from_be_bytes([rest[10], rest[11]]),
        })
    }
}

impl std::fmt::Display for UniqueKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut id = MessageId { text: [b'0'; 56], length: 0 };
        match self.ip {
            IpAddr::V4(ip) => id.push(&ip.octets()),
            IpAddr::V6(ip) => id.push(&ip.octets()),
        }
        id.push(&self.process.to_be_bytes());
        id.push(&self.salt.to_be_bytes());
        id.push(&self.millis_of_month.to_be_bytes());
        id.push(&self.counter.to_be_bytes());
        out.write_str(id.as_str())
    }
}

fn ip(address: &[u8]) -> Option<IpAddr> {
    match address.len() {
        4 => address.first_chunk::<4>().map(|octets| IpAddr::V4(Ipv4Addr::from(*octets))),
        16 => address.first_chunk::<16>().map(|octets| IpAddr::V6(Ipv6Addr::from(*octets))),
        _ => None,
    }
}

/// Reads 32 or 56 hexadecimal digits of either case.
fn hex<'a>(text: &str, out: &'a mut [u8; 28]) -> Option<&'a [u8]> {
    if !matches!(text.len(), 32 | 56) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (slot, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *slot = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    out.get(..text.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broker_ids() {
        let host: SocketAddr = "127.0.0.1:10911".parse().unwrap();
        let id = MessageId::new(host, 4096);
        assert_eq!(id.as_str(), "7F00000100002A9F0000000000001000");
        assert_eq!(decode_message_id(id.as_str()), Some((host, 4096)));
        assert_eq!(decode_message_id("7f00000100002a9f0000000000001000"), Some((host, 4096)));
        let host: SocketAddr = "[fe80::1]:10911".parse().unwrap();
        let id = MessageId::new(host, i64::MAX);
        assert_eq!(id.as_str(), "FE80000000000000000000000000000100002A9F7FFFFFFFFFFFFFFF");
        assert_eq!(decode_message_id(id.as_str()), Some((host, i64::MAX)));
        for bad in ["", "7F", "7F00000100002A9F000000000000100G", "7F0000010001 A9F000000000000100"] {
            assert_eq!(decode_message_id(bad), None, "{bad}");
        }
        assert_eq!(decode_message_id("7F000001FFFFFFFF0000000000001000"), None);
    }

    #[test]
    fn client_ids() {
        let text = "C0A8010207D218B4AAC20000000A0001";
        let key = UniqueKey::parse(text).unwrap();
        assert_eq!(key.ip.to_string(), "192.168.1.2");
        assert_eq!((key.process, key.salt, key.millis_of_month, key.counter), (0x07D2, 0x18B4_AAC2, 10, 1));
        assert_eq!(key.to_string(), text);
    }
}
