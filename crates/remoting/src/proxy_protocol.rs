//! The PROXY protocol, versions 1 and 2: what a load balancer says about the peer before the peer's own bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Buf;

const V1: &[u8] = b"PROXY ";
/// The longest line of version 1, its end included.
const V1_LONGEST: usize = 107;
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_FIXED: usize = 16;
const TLV_SSL: u8 = 0x20;

/// What a PROXY header said. An attribute of the [`crate::Connection`] when one was spoken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyInfo {
    /// Where the peer connects from and what it connected to; `None` when the proxy speaks for itself.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// The additional values of version 2 that are ASCII text.
    pub values: Vec<(u8, String)>,
}

impl ProxyInfo {
    /// The attributes by the names they have in RocketMQ.
    pub fn attributes(&self) -> Vec<(String, String)> {
        let mut list = Vec::new();
        if let Some((source, destination)) = self.addresses {
            list.push(("proxy_protocol_addr".to_owned(), source.ip().to_string()));
            list.push(("proxy_protocol_port".to_owned(), source.port().to_string()));
            list.push(("proxy_protocol_server_addr".to_owned(), destination.ip().to_string()));
            list.push(("proxy_protocol_server_port".to_owned(), destination.port().to_string()));
        }
        list.extend(
            self.values.iter().map(|(kind, value)| (format!("proxy_protocol_tlv_0x{kind:02x}"), value.clone())),
        );
        list
    }
}

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    NotProxy,
    NeedMore,
    Invalid(&'static str),
    /// A header of so many bytes.
    Header(usize, ProxyInfo),
}

pub(crate) fn parse(input: &[u8]) -> Parsed {
    if input.starts_with(V2) {
        return parse_v2(input);
    }
    if input.starts_with(V1) {
        return parse_v1(input);
    }
    if V1.starts_with(input) || V2.starts_with(input) { Parsed::NeedMore } else { Parsed::NotProxy }
}

fn parse_v1(input: &[u8]) -> Parsed {
    let window = input.get(..V1_LONGEST).unwrap_or(input);
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return if window.len() == V1_LONGEST { Parsed::Invalid("PROXY line does not end") } else { Parsed::NeedMore };
    };
    let Ok(line) = std::str::from_utf8(&window[..end]) else {
        return Parsed::Invalid("PROXY line is not text");
    };
    let parts: Vec<&str> = line.split(' ').collect();
    let addresses = match parts[..] {
        ["PROXY", "UNKNOWN", ..] => None,
        ["PROXY", "TCP4" | "TCP6", source, destination, source_port, destination_port] => {
            match (address(source, source_port), address(destination, destination_port)) {
                (Some(source), Some(destination)) => Some((source, destination)),
                _ => return Parsed::Invalid("PROXY line with a bad address"),
            }
        }
        _ => return Parsed::Invalid("PROXY line of unknown form"),
    };
    Parsed::Header(end + 2, ProxyInfo { addresses, values: Vec::new() })
}

fn address(ip: &str, port: &str) -> Option<SocketAddr> {
    Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
}

fn parse_v2(input: &[u8]) -> Parsed {
    let Some(fixed) = input.first_chunk::<V2_FIXED>() else {
        return Parsed::NeedMore;
    };
    let (version_command, family) = (fixed[12], fixed[13]);
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if version_command >> 4 != 2 {
        return Parsed::Invalid("PROXY header of unknown version");
    }
    let Some(content) = input.get(V2_FIXED..V2_FIXED + length) else {
        return Parsed::NeedMore;
    };
    let info = match version_command & 0x0F {
        0 => ProxyInfo::default(),
        1 => match addresses_v2(family, content) {
            Some(info) => info,
            None => return Parsed::Invalid("PROXY header shorter than its addresses"),
        },
        _ => return Parsed::Invalid("PROXY header with an unknown command"),
    };
    Parsed::Header(V2_FIXED + length, info)
}

fn addresses_v2(family: u8, mut content: &[u8]) -> Option<ProxyInfo> {
    let (addresses, taken) = match family >> 4 {
        1 => {
            let taken = content.first_chunk::<12>()?;
            let ip = |at: usize| IpAddr::V4(Ipv4Addr::new(taken[at], taken[at + 1], taken[at + 2], taken[at + 3]));
            let port = |at: usize| u16::from_be_bytes([taken[at], taken[at + 1]]);
            (Some((SocketAddr::new(ip(0), port(8)), SocketAddr::new(ip(4), port(10)))), 12)
        }
        2 => {
            let mut taken: &[u8] = content.first_chunk::<36>()?;
            let (source, destination) = (taken.get_u128(), taken.get_u128());
            let (source_port, destination_port) = (taken.get_u16(), taken.get_u16());
            let of = |ip: u128, port| SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), port);
            (Some((of(source, source_port), of(destination, destination_port))), 36)
        }
        // Unix sockets have paths of 108 bytes each, which say nothing about a peer on the network.
        3 => (None, 216),
        _ => (None, 0),
    };
    content = content.get(taken..)?;
    let mut values = Vec::new();
    read_values(content, &mut values, 0);
    Some(ProxyInfo { addresses, values })
}

/// Reads type-length-value triples; what does not fit any more is left out.
fn read_values(mut content: &[u8], into: &mut Vec<(u8, String)>, depth: u8) {
    while let Some([kind, high, low]) = content.first_chunk::<3>().copied() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some(value) = content.get(3..3 + length) else {
            return;
        };
        match std::str::from_utf8(value) {
            Ok(text) if text.is_ascii() && kind != TLV_SSL => into.push((kind, text.to_owned())),
            _ => {}
        }
        // The one about TLS holds others behind a byte of flags and a word of verification result.
        if kind == TLV_SSL && depth == 0 {
            read_values(value.get(5..).unwrap_or_default(), into, 1);
        }
        content = content.get(3 + length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(parsed: Parsed) -> (usize, ProxyInfo) {
        match parsed {
            Parsed::Header(length, info) => (length, info),
            other => panic!("expected a header, got {other:?}"),
        }
    }

    #[test]
    fn version_1_names_both_ends() {
        let line = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nrest";
        let (length, info) = header(parse(line));
        assert_eq!(&line[length..], b"rest");
        let (source, destination) = info.addresses.unwrap();
        assert_eq!(
            (source.to_string(), destination.to_string()),
            ("192.168.0.1:56324".into(), "192.168.0.11:443".into())
        );
        let (_, info) = header(parse(b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n"));
        assert_eq!(info.addresses.unwrap().0.to_string(), "[2001:db8::1]:1");
        assert_eq!(header(parse(b"PROXY UNKNOWN\r\n")).1, ProxyInfo::default());
    }

    #[test]
    fn every_cut_of_a_header_waits_for_more() {
        let v2 = v2_with_values();
        for cut in 0..v2.len() {
            assert_eq!(parse(&v2[..cut]), Parsed::NeedMore, "cut at {cut}");
        }
        let v1 = b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n";
        for cut in 0..v1.len() {
            assert_eq!(parse(&v1[..cut]), Parsed::NeedMore, "cut at {cut}");
        }
    }

    fn v2_with_values() -> Vec<u8> {
        let mut bytes = V2.to_vec();
        let content = [
            &[10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39, 0x26, 0x94][..],
            &[0xE0, 0, 3, b'a', b'b', b'c'],
            &[0xE1, 0, 1, 0xFF],
            &[0x20, 0, 12, 1, 0, 0, 0, 0, 0x21, 0, 4, b'T', b'L', b'S', b'1'],
        ]
        .concat();
        bytes.extend_from_slice(&[0x21, 0x11, 0, content.len() as u8]);
        bytes.extend_from_slice(&content);
        bytes
    }

    #[test]
    fn version_2_names_both_ends_and_values() {
        let (length, info) = header(parse(&v2_with_values()));
        assert_eq!(length, v2_with_values().len());
        let expected = [
            ("proxy_protocol_addr", "10.0.0.1"),
            ("proxy_protocol_port", "12345"),
            ("proxy_protocol_server_addr", "10.0.0.2"),
            ("proxy_protocol_server_port", "9876"),
            ("proxy_protocol_tlv_0xe0", "abc"),
            ("proxy_protocol_tlv_0x21", "TLS1"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(info.attributes(), expected);
    }

    #[test]
    fn a_local_header_names_nobody() {
        let mut bytes = V2.to_vec();
        bytes.extend_from_slice(&[0x20, 0x00, 0, 0]);
        assert_eq!(header(parse(&bytes)), (16, ProxyInfo::default()));
    }

    #[test]
    fn frames_and_rubbish_are_told_apart() {
        assert_eq!(parse(&[0, 0, 0, 100]), Parsed::NotProxy);
        assert_eq!(parse(&[0x16, 3, 1]), Parsed::NotProxy);
        assert_eq!(parse(b"POST / HTTP"), Parsed::NotProxy);
        assert_eq!(parse(b""), Parsed::NeedMore);
        assert!(matches!(parse(b"PROXY TCP4 1.2.3.4 nonsense 1 2\r\n"), Parsed::Invalid(_)));
        assert!(matches!(parse(&[b"PROXY ".to_vec(), vec![b'x'; 200]].concat()), Parsed::Invalid(_)));
        let mut bytes = V2.to_vec();
        bytes.extend_from_slice(&[0x21, 0x11, 0, 2, 1, 2]);
        assert!(matches!(parse(&bytes), Parsed::Invalid(_)));
    }
}
