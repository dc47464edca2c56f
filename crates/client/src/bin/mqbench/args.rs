//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use protocol::SerializeType;

/// Loads a RocketMQ-compatible broker and says what it cost: rate, latency quantiles, and CPU time of the server
/// process per message.
///
/// Latencies are corrected for coordinated omission: with --rate they count from the time a message was due; without,
/// what a slow answer kept from being sent is filled in.
#[derive(Debug, Parser)]
#[command(name = "mqbench", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) mode: Mode,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Sends messages.
    Produce {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        produce: Produce,
    },
    /// Reads the messages of a topic, each once; ends when all that were there at the start have been read.
    Consume {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        consume: Consume,
    },
    /// Sends, and reads what is sent; also tells the time from one to the other.
    Both {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        produce: Produce,
        #[command(flatten)]
        consume: Consume,
    },
}

#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(crate) struct Common {
    /// Name servers: host:port;host:port
    #[arg(short = 'n', long = "namesrv", env = "NAMESRV_ADDR", default_value = "127.0.0.1:9876")]
    pub(crate) name_servers: String,
    #[arg(short = 't', long, default_value = "BenchmarkTest")]
    pub(crate) topic: String,
    /// Create the topic first, with so many queues on each broker.
    #[arg(long, value_name = "QUEUES")]
    pub(crate) create: Option<i32>,
    #[arg(short = 'c', long, default_value_t = 4)]
    pub(crate) connections: usize,
    /// How headers are written.
    #[arg(long, value_enum, default_value_t = Codec::Json)]
    pub(crate) codec: Codec,
    /// Seconds to measure for.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// Messages to stop after, whatever the time.
    #[arg(long)]
    pub(crate) count: Option<u64>,
    /// Seconds to run before measuring. Not used with --count, nor by consume without --follow.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) warmup: f64,
    /// The server's process id, to tell its CPU time and memory (Linux, same machine). May be given several times.
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Vec<u32>,
    /// Threads of the generator.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Print the result as one line of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress lines.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(crate) struct Produce {
    /// Messages under way on each connection at most.
    #[arg(short = 'f', long, default_value_t = 64)]
    pub(crate) in_flight: usize,
    /// Bytes of each body.
    #[arg(short = 's', long, default_value_t = 1024)]
    pub(crate) size: usize,
    /// Messages per second over all connections; without it, each answer is followed by the next message at once.
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    #[arg(long, default_value = "mqbench-producer")]
    pub(crate) producer_group: String,
}

#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(crate) struct Consume {
    /// Messages per pull at most.
    #[arg(short = 'b', long, default_value_t = 32)]
    pub(crate) batch: i32,
    /// Go on waiting for new messages until the time is up.
    #[arg(long)]
    pub(crate) follow: bool,
    #[arg(long, default_value = "mqbench-consumer")]
    pub(crate) consumer_group: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    Json,
    Binary,
}

impl Codec {
    pub(crate) fn serialize(self) -> SerializeType {
        match self {
            Self::Json => SerializeType::Json,
            Self::Binary => SerializeType::Binary,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_mode_can_be_asked_for() {
        Cli::command().debug_assert();
        for mode in ["produce", "consume", "both"] {
            Cli::try_parse_from(["mqbench", mode, "-t", "T", "--seconds", "1", "--server-pid", "7"]).unwrap();
        }
    }
}
