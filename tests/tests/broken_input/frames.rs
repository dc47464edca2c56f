//! Bytes that are no frames, and frames that are no requests.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::{BufMut, BytesMut};
use protocol::{Command, SerializeType, request_code};
use rocketmq_tests::wire::Wire;

use crate::rig::{Rig, is_closed, random, throw};

const SOON: Duration = Duration::from_secs(5);

fn frame(mark: u8, header_length: u32, length: u32, rest: &[u8]) -> Vec<u8> {
    let mut out = length.to_be_bytes().to_vec();
    out.extend_from_slice(&(u32::from(mark) << 24 | header_length).to_be_bytes());
    out.extend_from_slice(rest);
    out
}

fn json_frame(header: &str) -> Vec<u8> {
    frame(0, header.len() as u32, header.len() as u32 + 4, header.as_bytes())
}

fn encoded(command: &Command) -> BytesMut {
    let mut out = BytesMut::new();
    command.encode(&mut out);
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_bytes_and_half_frames() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut random = random();
    let good = encoded(&Command::request(request_code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", "T"));
    for address in rig.addresses() {
        for round in 0..300 {
            let mut noise = vec![0; random.usize(1..2000)];
            random.fill(&mut noise);
            if round % 3 == 0 {
                // A length that fits, so that the noise is taken for a header.
                let length = noise.len() as u32 + 4;
                noise = frame(random.u8(0..3), random.u32(0..length), length, &noise);
            }
            if round % 3 == 1 {
                noise = good.to_vec();
                let at = random.usize(..noise.len());
                noise[at] = random.u8(..);
            }
            throw(address, &noise)?;
        }
        for cut in 0..good.len() {
            throw(address, &good[..cut])?.shutdown(Shutdown::Write)?;
        }
    }
    rig.unharmed(150, 60).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lengths_that_lie() -> Result<()> {
    const LIMIT: u32 = 16 * 1024 * 1024;
    let mut rig = Rig::start("").await?;
    let mut long = vec![b' '; LIMIT as usize + 1];
    long[..4].copy_from_slice(&(LIMIT - 3).to_be_bytes());
    let bad = [
        ("16 MiB + 1", long),
        ("the longest length", frame(0, 10, u32::MAX, b"")),
        ("a negative length", frame(0, 10, i32::MIN as u32, b"")),
        ("a header past the frame", frame(0, 100, 20, &[b' '; 16])),
        ("the longest header", frame(1, 0x00FF_FFFF, 20, &[0; 16])),
        ("no header", frame(0, 0, 4, b"")),
        ("a frame of nothing", vec![0, 0, 0, 0, 0, 0, 0, 0]),
        ("a frame of three bytes", vec![0, 0, 0, 3, 0, 0, 0]),
        ("an unknown serialisation", frame(9, 2, 6, b"{}")),
        ("binary that ends early", frame(1, 3, 7, &[0, 0, 0])),
        (
            "a binary remark past the header",
            frame(1, 21, 25, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]),
        ),
        ("JSON that is none", json_frame("{\"code\":")),
    ];
    for address in rig.addresses() {
        for (what, bytes) in &bad {
            let stream = throw(address, bytes)?;
            ensure!(is_closed(&stream, SOON)?, "{what} does not end the connection to {address}");
        }
    }
    rig.unharmed(150, 60).await
}

/// What waits for its end holds what was sent, not what was promised.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promised_frames_take_no_memory() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut held = Vec::new();
    for address in rig.addresses() {
        for _ in 0..200 {
            held.push(throw(address, &frame(0, 1000, 16 * 1024 * 1024 - 4, &[b' '; 600]))?);
        }
    }
    rig.unharmed(120, 60).await?;
    drop(held);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn header_bombs() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let many: Vec<String> = (0..10_000).map(|at| format!("\"key{at}\":\"value{at}\"")).collect();
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(200_000), close.repeat(200_000));
    let nested = format!("{{\"code\":105,\"other\":{}}}", deep("[", "]"));
    let objects = format!("{{\"code\":105,\"extFields\":{}1{}}}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let unclosed = format!("{{\"code\":105,\"extFields\":{}", "{\"a\":[".repeat(100_000));
    for address in rig.addresses() {
        for header in [&nested, &objects, &unclosed] {
            throw(address, &json_frame(header))?;
        }
        for serialize in [SerializeType::Json, SerializeType::Binary] {
            let mut wire = Wire::connect(address)?;
            let mut request = Command::request(request_code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", "T");
            for at in 0..10_000 {
                let key: &'static str = Box::leak(format!("key{at}").into_boxed_str());
                request = request.with_field(key, format!("value{at}"));
            }
            request.serialize = serialize;
            wire.ask(&request)?;
        }
        let mut stream = throw(address, &[])?;
        for _ in 0..50 {
            let header = format!("{{\"code\":105,\"opaque\":1,\"extFields\":{{{}}}}}", many.join(","));
            stream.write_all(&json_frame(&header))?;
        }
    }
    rig.unharmed(150, 60).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_codes_are_answered_with_javas_words() -> Result<()> {
    let mut rig = Rig::start("").await?;
    for address in rig.addresses() {
        let mut wire = Wire::connect(address)?;
        for code in [0, -1, 9_999, 32_767, 200_099, i32::MAX, i32::MIN] {
            let answer = wire.ask(&Command::request(code))?;
            let remark = answer.remark.as_deref().unwrap_or_default();
            ensure!(answer.code == 3, "code {code} is answered {}", answer.code);
            ensure!(remark.contains(&format!("request type {code} not supported")), "code {code}: {remark:?}");
        }
    }
    rig.unharmed(150, 60).await
}

/// Opaques are the client's business; answers to questions nobody asked are nobody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colliding_opaques_and_unasked_responses() -> Result<()> {
    let mut rig = Rig::start("").await?;
    for address in rig.addresses() {
        let mut wire = Wire::connect(address)?;
        let mut out = BytesMut::new();
        for opaque in [7, 7, 7, i32::MIN, -1, 7] {
            let mut request = Command::request(9_999);
            request.opaque = opaque;
            request.encode(&mut out);
        }
        for opaque in -1..2_000 {
            let mut response = Command::response(0).with_body(vec![b'x'; 100]);
            response.opaque = opaque;
            response.encode(&mut out);
        }
        out.put_slice(&encoded(&Command::request(9_998)));
        wire.stream().write_all(&out)?;
        let mut opaques = Vec::new();
        for _ in 0..7 {
            opaques.push(wire.read()?.opaque);
        }
        ensure!(opaques == [7, 7, 7, i32::MIN, -1, 7, 0], "answered {opaques:?}");
    }
    rig.unharmed(150, 60).await
}
