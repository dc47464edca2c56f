//! Prints docs/configuration.md: `cargo run -p rocketmq-service --bin configuration-doc > docs/configuration.md`.

fn main() {
    print!("{}", service::keys::configuration_doc());
}
