//! The keys of the servers, one struct per Java class, and the groups that one file feeds.
//!
//! A key that stands here is implemented by the server that reads it, or is marked `ignored` with the reason. All other
//! keys of Java warn at start.

pub mod broker;
pub mod namesrv;
pub mod netty;
pub mod service;
pub mod store;
pub mod system;
pub mod tls;

pub use broker::{BrokerConfig, BrokerIdentity, BrokerSettings};
pub use namesrv::{NamesrvConfig, NamesrvSettings};
pub use netty::{NettyClientConfig, NettyServerConfig};
pub use service::ServiceConfig;
pub use store::{BrokerRole, FlushDiskType, MessageStoreConfig};
pub use system::SystemProperties;
pub use tls::TlsSystemConfig;

/// The text of docs/configuration.md.
pub fn configuration_doc() -> String {
    use crate::config::markdown;
    [
        DOC_HEAD,
        "\n## Name server\n\n",
        &markdown::<NamesrvConfig>(),
        "\n## Broker\n\n",
        &markdown::<BrokerIdentity>(),
        "\n",
        &markdown::<BrokerConfig>(),
        "\n## Message store\n\nIn the broker's file.\n\n",
        &markdown::<MessageStoreConfig>(),
        "\n## Listening\n\nIn the file of any server.\n\n",
        &markdown::<NettyServerConfig>(),
        "\n## Calling other servers\n\n",
        &markdown::<NettyClientConfig>(),
        "\n## TLS\n\nSystem properties in Java. Here the file, `-D` and the file named by `tls.config.file` set them.\n\n",
        &markdown::<TlsSystemConfig>(),
        "\n## Other system properties of Java\n\n",
        &markdown::<SystemProperties>(),
        "\n## Keys that Java does not have\n\n",
        &markdown::<ServiceConfig>(),
    ]
    .concat()
}

const DOC_HEAD: &str = "\
# Configuration

<!-- Written by `cargo run -p rocketmq-service --bin configuration-doc`; change the declarations in crates/service/src/keys. -->

Servers read RocketMQ's own `.properties` files: `mqbroker -c broker.conf`, `mqnamesrv -c namesrv.conf`. Without a file
every key has its default. `-Dkey=value` sets a single key and wins over the file; `-n` wins over `namesrvAddr`. `-p` prints
every key with its value, `-m` (broker) the important ones.

- A value that its key cannot take stops the start with the file and the line.
- A key that RocketMQ knows and this server does not implement, and a key that nobody knows, are named in a warning; a
  misspelt one with the key that was probably meant.
- `mqadmin updateBrokerConfig` and `updateNamesrvConfig` change keys at run time and rewrite the `-c` file, comments kept, the
  content before in `.bak`. The column *change* says whether the new value counts at once or after a restart. A value that
  its key cannot take refuses the whole update.
- Files are read as UTF-8, or as ISO-8859-1 if they are not UTF-8; `\\uXXXX` works in both.
";

#[cfg(test)]
mod tests {
    use super::{BrokerSettings, NamesrvSettings};
    use crate::config::{BROKER_KEYS, Config, NAMESRV_KEYS, Source, load};

    #[test]
    fn the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == super::configuration_doc(),
            "run: cargo run -p rocketmq-service --bin configuration-doc > docs/configuration.md"
        );
    }

    /// Every file in conf/ is understood whole, and so is every key that stands there as a comment.
    #[test]
    fn the_example_files_are_understood() {
        let conf = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf"));
        let mut seen = 0;
        for folder in ["", "2m-2s-async", "2m-noslave"] {
            for entry in std::fs::read_dir(conf.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name.ends_with(".conf") || name.ends_with(".properties") {
                    seen += 1;
                    let example = std::fs::read_to_string(&path).unwrap();
                    match name.starts_with("namesrv") {
                        true => understand::<NamesrvSettings>(&example, NAMESRV_KEYS),
                        false => understand::<BrokerSettings>(&example, BROKER_KEYS),
                    }
                }
            }
        }
        assert_eq!(seen, 8);
    }

    fn understand<C: Config>(example: &str, known: &'static str) {
        let is_key = |line: &&str| line.split('=').next().is_some_and(|key| !key.contains(' ')) && line.contains('=');
        let with_comments = example.lines().map(|line| match line.strip_prefix('#').filter(is_key) {
            Some(commented) => format!("{commented}\n"),
            None => format!("{line}\n"),
        });
        for text in [example.to_string(), with_comments.collect()] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("x.conf");
            std::fs::write(&file, &text).unwrap();
            let source = Source { file: Some(&file), overrides: &[], known };
            let loaded = load(C::default(), &source, |_| Ok(()));
            let warnings = loaded.map(|loaded| loaded.warnings).map_err(|error| error.to_string());
            assert_eq!(warnings, Ok(vec![]), "{text}");
        }
    }
}
