//! `mqbroker store check|dump|rebuild`: an operator's tools on a stopped store.

mod json;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use service::cli::{CommandLine, EXIT_ERROR, Exit};
use service::config::Loaded;
use service::keys::BrokerSettings;
use store::offline::{Findings, OfflineStore, Remedy, Selection, rebuild};
use store::{OpenError, StoreConfig};

use crate::running::store_config;

/// `check` found faults.
const EXIT_FAULTS: u8 = 1;

/// The sub-command, to be added to the broker's command line.
pub fn command() -> Command {
    let check =
        Command::new("check").about("Look at every file and report the first fault of each kind; changes nothing");
    let dump = Command::new("dump")
        .about("Print records as JSON lines; changes nothing")
        .arg(number("offset", "First commit log offset [default: the first there is]"))
        .arg(number("to", "Commit log offset to stop before"))
        .arg(text("topic", "TOPIC", "With --queue: the messages of that queue; with --key: those with that key"))
        .arg(number("queue", "Queue id").requires("topic").conflicts_with_all(["offset", "to", "key"]))
        .arg(number("from", "First queue offset").requires("queue"))
        .arg(number("max", "Most messages").requires("queue"))
        .arg(text("key", "KEY", "Key or unique key").requires("topic").conflicts_with_all(["offset", "to"]));
    let rebuild = Command::new("rebuild").about("Build consume queues and index again from the commit log").arg(
        Arg::new("remove-old")
            .long("remove-old")
            .action(ArgAction::SetTrue)
            .help("Remove the old files at the end instead of keeping them in rebuild.old"),
    );
    Command::new("store")
        .about("Check, print or rebuild the store of a broker that does not run")
        .subcommand_required(true)
        .subcommands([check, dump, rebuild].map(|command| command.args(place())))
}

/// Where the store is.
fn place() -> [Arg; 3] {
    [
        text("configFile", "FILE", "The broker's properties file, for paths and file sizes").short('c'),
        text("store-path", "DIR", "The store's folder; wins over the file's storePathRootDir"),
        Arg::new("define")
            .short('D')
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .help("Set one configuration key, such as mappedFileSizeCommitLog"),
    ]
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    text(name, "N", help).value_parser(clap::value_parser!(u64).range(..=i64::MAX as u64))
}

/// Runs the sub-command that `matches` holds.
pub fn run(matches: &ArgMatches) -> Result<(), Exit> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let settings = settings(matches)?;
    let root = PathBuf::from(&settings.store.store_path_root_dir);
    let mut config = store_config(&settings, &root);
    match name {
        "rebuild" => {
            service::logging::start("mqbroker", &settings.service).map_err(failed)?;
            run_rebuild(&config, matches.get_flag("remove-old"))
        }
        name => {
            config.screen = Some(Arc::new(|line| eprintln!("{line}")));
            let store = OfflineStore::open(config).map_err(not_opened)?;
            if name == "check" { run_check(&store) } else { run_dump(&store, matches) }
        }
    }
}

fn settings(matches: &ArgMatches) -> Result<Arc<BrokerSettings>, Exit> {
    let mut defines: Vec<(String, String)> = Vec::new();
    for define in matches.get_many::<String>("define").unwrap_or_default() {
        let (key, value) = define.split_once('=').ok_or_else(|| failed(format!("-D {define}: expected KEY=VALUE")))?;
        defines.push((key.to_owned(), value.to_owned()));
    }
    if let Some(path) = matches.get_one::<String>("store-path") {
        defines.push(("storePathRootDir".to_owned(), path.clone()));
    }
    let line = CommandLine {
        config_file: matches.get_one::<String>("configFile").map(PathBuf::from),
        namesrv_addr: None,
        print_all: false,
        print_important: false,
        defines,
        matches: matches.clone(),
    };
    // Its warnings are the broker's business.
    let Loaded { live, .. } = BrokerSettings::load(&line)?;
    Ok(live.snapshot())
}

fn run_check(store: &OfflineStore) -> Result<(), Exit> {
    let found = store.check().map_err(failed)?;
    let mut text = String::new();
    for (first, count) in found.first_of_each_kind() {
        let offset = first.offset.map_or(String::new(), |offset| format!(", offset {offset}"));
        text.push_str(&format!(
            "{}: {count}, first at {} byte {}{offset}: {} [{}]\n",
            first.kind,
            first.path.display(),
            first.position,
            first.what,
            first.remedy.words()
        ));
    }
    text.push_str(&summary(&found));
    let code = if found.is_clean() { 0 } else { EXIT_FAULTS };
    Err(Exit { code, stdout: text, stderr: String::new() })
}

fn summary(found: &Findings) -> String {
    let totals = &found.totals;
    let faults = match found.is_clean() {
        true => "no faults".to_owned(),
        false => [Remedy::Lost, Remedy::ByHand, Remedy::Rebuild, Remedy::NextStart]
            .map(|remedy| (found.count(remedy), remedy.words()))
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} faults: {words}"))
            .collect::<Vec<_>>()
            .join("; "),
    };
    format!(
        "checked {} records in {} commit log files ({} to {}), {} units in {} queues, {} compacted messages, {} entries in {} index files, {} tables: {faults}\n",
        totals.records,
        totals.commit_log_files,
        totals.log_start,
        totals.log_end,
        totals.units,
        totals.queues,
        totals.compacted,
        totals.index_entries,
        totals.index_files,
        totals.config_files,
    )
}

fn run_dump(store: &OfflineStore, matches: &ArgMatches) -> Result<(), Exit> {
    let number = |name| matches.get_one::<u64>(name).copied();
    let topic = matches.get_one::<String>("topic").cloned();
    let selection = match (topic, number("queue"), matches.get_one::<String>("key")) {
        (Some(topic), Some(queue), _) => Selection::Queue {
            topic,
            queue: i32::try_from(queue).map_err(failed)?,
            from: number("from").unwrap_or(0) as i64,
            max: number("max").unwrap_or(u64::MAX),
        },
        (Some(topic), None, Some(key)) => Selection::Key { topic, key: key.clone() },
        (Some(_), None, None) => return Err(failed("--topic needs --queue or --key")),
        (None, ..) => Selection::Offsets { from: number("offset").unwrap_or(0), to: number("to").unwrap_or(u64::MAX) },
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let written = store
        .dump(&selection, &mut |dumped| {
            serde_json::to_writer(&mut out, &json::line(dumped))?;
            out.write_all(b"\n")
        })
        .and_then(|()| out.flush());
    match written {
        // `| head` has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(failed),
    }
}

fn run_rebuild(config: &StoreConfig, remove_old: bool) -> Result<(), Exit> {
    let rebuilt = rebuild(config, !remove_old).map_err(not_opened)?;
    println!(
        "rebuilt {} queues with {} messages and {} index files with {} entries; the commit log ends at {}",
        rebuilt.queues, rebuilt.units, rebuilt.index_files, rebuilt.index_entries, rebuilt.log_end
    );
    if let Some(kept) = rebuilt.kept {
        println!("the old files are in {}", kept.display());
    }
    Ok(())
}

fn not_opened(error: OpenError) -> Exit {
    match error {
        OpenError::Locked(root) => {
            failed(format!("{root} is in use by a running broker or another tool; stop it first"))
        }
        error => failed(error),
    }
}

fn failed(error: impl std::fmt::Display) -> Exit {
    Exit::error(EXIT_ERROR, error)
}
