//! The configuration for people: `-p`, `-m` and docs/configuration.md.

use std::fmt::Write as _;

use super::{Config, Key, Life};

/// `-p`: every key, `name=value`.
pub fn print_all<C: Config>(values: &C) -> String {
    print(values, |_| true)
}

/// `-m`: the important keys.
pub fn print_important<C: Config>(values: &C) -> String {
    print(values, |key| key.important)
}

fn print<C: Config>(values: &C, which: impl Fn(&Key) -> bool) -> String {
    let rows = C::keys().into_iter().filter(|key| which(key));
    rows.map(|key| format!("{}={}\n", key.name, values.get(key.name).unwrap_or_default())).collect()
}

/// A table of the keys that `C` declares.
pub fn markdown<C: Config>() -> String {
    let mut table = String::from("| key | type | default | change | what it does |\n|---|---|---|---|---|\n");
    for key in C::keys() {
        let change = match key.life {
            Life::live => "at once",
            Life::fixed => "restart",
            Life::ignored => "no effect",
        };
        let doc: Vec<_> = key.doc.split_whitespace().collect();
        let default = match key.default.replace('_', "") {
            plain if plain.parse::<i64>().is_ok() => plain,
            _ => key.default.to_string(),
        };
        let default = if default.is_empty() || default == "None" { String::new() } else { format!("`{default}`") };
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {change} | {} |",
            key.name,
            key.kind,
            default,
            doc.join(" ").replace('|', "\\|")
        );
    }
    table
}
