//! The command line that all servers share, in Java's flags and exit codes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::config::{self, Config, ConfigError, Loaded, Source};

/// Bad arguments.
pub const EXIT_USAGE: u8 = 1;
/// A server that was asked for something impossible, e.g. a slave without an id: Java's -3.
pub const EXIT_REFUSED: u8 = 253;
/// Anything else that went wrong at start: Java's -1.
pub const EXIT_ERROR: u8 = 255;

/// The process should end here, with these words.
#[derive(Debug)]
pub struct Exit {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

impl Exit {
    /// An end with a message for the operator.
    pub fn error(code: u8, message: impl std::fmt::Display) -> Exit {
        Exit { code, stdout: String::new(), stderr: format!("{message}\n") }
    }

    fn printed(stdout: String) -> Exit {
        Exit { code: 0, stdout, stderr: String::new() }
    }

    /// Prints the words; return the code from `main`.
    pub fn leave(self) -> ExitCode {
        print!("{}", self.stdout);
        eprint!("{}", self.stderr);
        ExitCode::from(self.code)
    }
}

/// What the command line asked for.
#[derive(Debug, Clone)]
pub struct CommandLine {
    /// `-c`.
    pub config_file: Option<PathBuf>,
    /// `-n`.
    pub namesrv_addr: Option<String>,
    /// `-p`.
    pub print_all: bool,
    /// `-m`.
    pub print_important: bool,
    /// `-Dkey=value`, in order.
    pub defines: Vec<(String, String)>,
    /// Everything, for the options a server adds.
    pub matches: ArgMatches,
}

/// The options of the server called `program`; its own ones are added to the answer.
///
/// `-m` belongs to the broker; pass `important` to have it.
pub fn command(program: &'static str, important: bool) -> Command {
    let flag = |long: &'static str, short, help: &'static str| {
        Arg::new(long).long(long).short(short).action(ArgAction::SetTrue).help(help)
    };
    let value = |long: &'static str, short, name: &'static str, help: &'static str| {
        Arg::new(long).long(long).short(short).value_name(name).help(help)
    };
    let mut command = Command::new(program)
        .version(env!("CARGO_PKG_VERSION"))
        .infer_long_args(true)
        .args_override_self(true)
        .arg(value("configFile", 'c', "FILE", "Properties file; remote configuration updates rewrite it"))
        .arg(value("namesrvAddr", 'n', "LIST", "Name servers, e.g. '192.168.0.1:9876;192.168.0.2:9876'"))
        .arg(flag("printConfigItem", 'p', "Print all configuration keys with their values and exit"))
        .arg(
            value("define", 'D', "KEY=VALUE", "Set one configuration key; wins over the file")
                .action(ArgAction::Append)
                .value_parser(define),
        );
    if important {
        command = command.arg(flag("printImportantConfig", 'm', "Print the important configuration keys and exit"));
    }
    command
}

fn define(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
        _ => Err("expected KEY=VALUE".to_string()),
    }
}

impl CommandLine {
    /// Parses the arguments, the program's name first. Help, version and bad arguments are an [`Exit`].
    pub fn parse(command: Command, arguments: impl IntoIterator<Item = OsString>) -> Result<CommandLine, Exit> {
        let long: Vec<String> = command.get_arguments().filter_map(|arg| arg.get_long().map(String::from)).collect();
        let arguments = arguments.into_iter().map(|argument| two_dashes(argument, &long));
        let matches = command.try_get_matches_from(arguments).map_err(|error| {
            let text = error.render().to_string();
            match error.use_stderr() {
                true => Exit { code: EXIT_USAGE, stdout: String::new(), stderr: text },
                false => Exit::printed(text),
            }
        })?;
        let text = |name: &str| matches.get_one::<String>(name).map(|value| value.trim().to_string());
        let flag = |name: &str| matches!(matches.try_get_one::<bool>(name), Ok(Some(true)));
        Ok(CommandLine {
            config_file: text("configFile").map(PathBuf::from),
            namesrv_addr: text("namesrvAddr"),
            print_all: flag("printConfigItem"),
            print_important: flag("printImportantConfig"),
            defines: matches.get_many::<(String, String)>("define").unwrap_or_default().cloned().collect(),
            matches,
        })
    }

    /// Reads the configuration: `base`, then the file, then the command line, then `finish` for what depends on the
    /// values read. `-p` and `-m` and anything wrong are an [`Exit`].
    pub fn load<C: Config>(
        &self,
        base: C,
        known: &'static str,
        finish: impl FnOnce(&mut C) -> Result<(), ConfigError>,
    ) -> Result<Loaded<C>, Exit> {
        let mut overrides = self.defines.clone();
        if let Some(list) = &self.namesrv_addr
            && C::key("namesrvAddr").is_some()
        {
            overrides.push(("namesrvAddr".to_string(), list.clone()));
        }
        let file = self.config_file.as_deref().map(Path::new);
        let source = Source { file, overrides: &overrides, known };
        let loaded = config::load(base, &source, finish).map_err(|error| Exit::error(EXIT_ERROR, error))?;
        if self.print_all {
            return Err(Exit::printed(config::print_all(&**loaded.live.load())));
        }
        if self.print_important {
            return Err(Exit::printed(config::print_important(&**loaded.live.load())));
        }
        Ok(loaded)
    }
}

/// Java's parser takes `-configFile` for `--configFile`.
fn two_dashes(argument: OsString, long: &[String]) -> OsString {
    match argument.to_str().and_then(|text| text.strip_prefix('-')) {
        Some(word) if long.iter().any(|name| name == word.split('=').next().unwrap_or(word)) => {
            OsString::from(format!("--{word}"))
        }
        _ => argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{BrokerSettings, NamesrvSettings};

    fn parse(arguments: &[&str]) -> Result<CommandLine, Exit> {
        let arguments = ["mqbroker"].iter().chain(arguments).map(OsString::from);
        CommandLine::parse(command("mqbroker", true), arguments)
    }

    #[test]
    fn java_spellings() {
        for arguments in [
            &["-c", "b.conf", "-n", " a:1;b:2", "-p"][..],
            &["--configFile", "b.conf", "--namesrvAddr=a:1;b:2", "--printConfigItem"],
            &["-configFile", "b.conf", "-namesrvAddr=a:1;b:2", "-printConfigItem"],
            &["-cb.conf", "-n=a:1;b:2", "--printC"],
        ] {
            let line = parse(arguments).unwrap();
            assert_eq!(line.config_file, Some(PathBuf::from("b.conf")), "{arguments:?}");
            assert_eq!(line.namesrv_addr.as_deref(), Some("a:1;b:2"), "{arguments:?}");
            assert!(line.print_all && !line.print_important, "{arguments:?}");
        }
        let line = parse(&["-m", "-Dtls.server.mode=disabled", "-D", "a=b=c"]).unwrap();
        assert!(line.print_important);
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        assert_eq!(line.defines, [pair("tls.server.mode", "disabled"), pair("a", "b=c")]);
    }

    #[test]
    fn exits() {
        let help = parse(&["-h"]).unwrap_err();
        assert_eq!(help.code, 0);
        assert!(help.stdout.contains("--printImportantConfig"), "{}", help.stdout);
        for bad in [&["--bad"][..], &["-c"], &["stray"], &["-Dx"]] {
            let exit = parse(bad).unwrap_err();
            assert_eq!((exit.code, exit.stdout.as_str()), (EXIT_USAGE, ""), "{bad:?}");
            assert!(!exit.stderr.is_empty());
        }
        let namesrv = ["mqnamesrv", "-m"].map(OsString::from);
        let exit = CommandLine::parse(command("mqnamesrv", false), namesrv).unwrap_err();
        assert_eq!(exit.code, EXIT_USAGE);
    }

    #[test]
    fn loading() {
        let line = parse(&["-n", "a:1", "-DlistenPort=5"]).unwrap();
        let loaded = BrokerSettings::load(&line).unwrap();
        assert_eq!(loaded.live.load().netty.listen_port, 5);
        assert_eq!(loaded.live.load().broker.namesrv_addr.as_deref(), Some("a:1"));
        // accepted without effect, as by Java's name server
        assert_eq!(NamesrvSettings::load(&line).unwrap().warnings, []);

        let exit = NamesrvSettings::load(&parse(&["-p"]).unwrap()).err().unwrap();
        assert_eq!(exit.code, 0);
        assert!(exit.stdout.contains("\nlistenPort=9876\n"));
        let exit = BrokerSettings::load(&parse(&["-c", "/nowhere/x"]).unwrap()).err().unwrap();
        assert_eq!(exit.code, EXIT_ERROR);
        assert!(exit.stderr.contains("/nowhere/x"), "{}", exit.stderr);
    }

    #[test]
    fn a_name_server_updates_the_file_it_was_started_with() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("namesrv.conf");
        std::fs::write(&file, "listenPort=1\n").unwrap();
        let name = file.display().to_string();
        let live = NamesrvSettings::load(&parse(&["-c", &name]).unwrap()).unwrap().live;
        assert_eq!(live.load().namesrv.config_store_path, name);
        live.update(b"orderMessageEnable=true").unwrap();
        assert!(live.load().namesrv.order_message_enable);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "listenPort=1\norderMessageEnable=true\n");

        let stored = folder.path().join("stored.properties");
        let define = format!("-DconfigStorePath={}", stored.display());
        let live = NamesrvSettings::load(&parse(&[&define]).unwrap()).unwrap().live;
        live.update(b"orderMessageEnable=true").unwrap();
        assert_eq!(std::fs::read_to_string(&stored).unwrap(), "orderMessageEnable=true\n");
    }

    #[test]
    fn the_tls_file_overrides_all_but_the_two_switches() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.properties");
        std::fs::write(&file, "tls.server.certPath=/b\ntls.server.mode=disabled\ntls.enable=true\n").unwrap();
        let config = format!("-Dtls.config.file={}", file.display());
        let line = parse(&["-Dtls.server.certPath=/a", &config]).unwrap();
        let live = BrokerSettings::load(&line).unwrap().live;
        assert_eq!(live.load().tls.server_cert_path.as_deref(), Some("/b"));
        assert_eq!(live.load().tls.server_mode, crate::keys::tls::TlsMode::Permissive);
        assert!(!live.load().tls.enable);
        std::fs::write(&file, "\ntls.server.need.client.auth=maybe\n").unwrap();
        let exit = BrokerSettings::load(&line).err().unwrap();
        assert!(exit.stderr.contains("tls.properties:2: tls.server.need.client.auth=maybe"), "{}", exit.stderr);
    }
}
