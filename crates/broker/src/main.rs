//! `mqbroker`: the broker as a process, alone or with a name server beside it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use broker::{Broker, RunningBroker, metrics_page, store_command};
use clap::{Arg, ArgAction};
use namesrv::Namesrv;
use service::cli::{CommandLine, EXIT_ERROR, EXIT_REFUSED, Exit, command};
use service::config::{BROKER_KEYS, Live, Loaded};
use service::http::{PageServer, Pages};
use service::keys::{BrokerRole, BrokerSettings, NamesrvSettings};
use service::metrics::Registry;
use service::stop::Stop;

/// Threads for requests that wait for the disk. They appear when needed and end when idle.
const BLOCKING_THREADS: usize = 32;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.leave(),
    }
}

fn run() -> Result<(), Exit> {
    let flags = command("mqbroker", true)
        .arg(
            Arg::new("standalone")
                .long("standalone")
                .action(ArgAction::SetTrue)
                .help("Run a name server in the same process, with one folder for all data"),
        )
        .arg(Arg::new("data").long("data").value_name("DIR").default_value("./data").help("That folder"))
        .arg(
            Arg::new("namesrvPort")
                .long("namesrvPort")
                .value_name("PORT")
                .value_parser(clap::value_parser!(u16))
                .default_value("9876")
                .help("Port of that name server"),
        )
        .subcommand(store_command::command());
    let line = CommandLine::parse(flags, std::env::args_os())?;
    if let Some(("store", matches)) = line.matches.subcommand() {
        return store_command::run(matches);
    }
    let standalone = line.matches.get_flag("standalone").then(|| Standalone {
        data: line.matches.get_one::<String>("data").cloned().unwrap_or_default(),
        namesrv_port: line.matches.get_one::<u16>("namesrvPort").copied().unwrap_or(9876),
    });
    let Loaded { live, warnings } = match &standalone {
        Some(standalone) => standalone.load(&line)?,
        None => BrokerSettings::load(&line)?,
    };
    let config = live.snapshot();
    check(&config)?;
    service::logging::start("mqbroker", &config.service).map_err(failed)?;
    service::open_files::raise_limit();
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BLOCKING_THREADS).build().map_err(failed)?;
    runtime.block_on(serve(live, standalone))
}

/// What Java ends with -3 for.
fn check(config: &BrokerSettings) -> Result<(), Exit> {
    let addresses = config.broker.namesrv_addr.as_deref().unwrap_or_default();
    let legal =
        |addr: &str| addr.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !addresses.split(';').filter(|addr| !addr.trim().is_empty()).all(|addr| legal(addr.trim())) {
        let words = format!(
            "The Name Server Address[{addresses}] illegal, please set it as follows, \"127.0.0.1:9876;192.168.0.1:9876\""
        );
        return Err(Exit::error(EXIT_REFUSED, words));
    }
    if config.store.broker_role == BrokerRole::Slave && config.identity.broker_id == 0 {
        return Err(Exit::error(EXIT_REFUSED, "Slave's brokerId must be > 0"));
    }
    Ok(())
}

/// Name server and broker in one process.
struct Standalone {
    data: String,
    namesrv_port: u16,
}

impl Standalone {
    fn load(&self, line: &CommandLine) -> Result<Loaded<BrokerSettings>, Exit> {
        let mut base = BrokerSettings::default();
        base.store.store_path_root_dir = format!("{}/store", self.data.trim_end_matches('/'));
        line.load(base, BROKER_KEYS, |settings| {
            settings.broker.namesrv_addr = Some(format!("127.0.0.1:{}", self.namesrv_port));
            settings.tls.apply_file()
        })
    }

    fn start_namesrv(&self, broker: &BrokerSettings) -> Result<Namesrv, Exit> {
        let mut settings = NamesrvSettings::default();
        let folder = Path::new(&self.data).join("namesrv");
        settings.namesrv.kv_config_path = folder.join("kvConfig.json").display().to_string();
        settings.namesrv.config_store_path = folder.join("namesrv.properties").display().to_string();
        settings.netty.bind_address.clone_from(&broker.netty.bind_address);
        settings.netty.listen_port = self.namesrv_port;
        settings.tls = broker.tls.clone();
        Namesrv::start(Live::new(settings)).map_err(failed)
    }

    fn greet(&self, broker: &RunningBroker) {
        let namesrv = format!("127.0.0.1:{}", self.namesrv_port);
        println!("name server on port {}, broker on {}, data in {}", self.namesrv_port, broker.addr(), self.data);
        println!("Try it with the mqadmin of any RocketMQ distribution:");
        println!("  mqadmin updateTopic -n {namesrv} -c {} -t Hello", broker.broker().cluster());
        println!("  mqadmin sendMessage -n {namesrv} -t Hello -p 'hello world'");
        println!("  mqadmin consumeMessage -n {namesrv} -t Hello");
    }
}

async fn serve(live: Live<BrokerSettings>, standalone: Option<Standalone>) -> Result<(), Exit> {
    let stop = Stop::new();
    stop.listen_to_signals().map_err(failed)?;
    let config = live.snapshot();
    let namesrv = standalone.as_ref().map(|standalone| standalone.start_namesrv(&config)).transpose()?;
    let running = Broker::start(live).await.map_err(failed)?;
    let pages = match config.page_address() {
        Some(address) => {
            let pages = PageServer::bind(&address, pages(running.broker())).await;
            Some(pages.map_err(|error| Exit::error(EXIT_ERROR, format!("metrics page on {address}: {error}")))?)
        }
        None => None,
    };

    let broker = running.broker();
    // Scripts wait for the words "boot success".
    let mut words = format!("The broker[{}, {}] boot success. serializeType=JSON", broker.name(), broker.address());
    if let Some(addresses) = &config.broker.namesrv_addr {
        words.push_str(" and name server is ");
        words.push_str(addresses);
    }
    println!("{words}");
    if let Some(standalone) = &standalone {
        standalone.greet(&running);
    }

    let reason = stop.requested().await;
    tracing::info!("stopping: {reason}");
    let limit = Duration::from_secs(config.service.stop_seconds.into());
    let stopped = tokio::time::timeout(limit, async {
        running.shutdown().await;
        if let Some(namesrv) = namesrv {
            namesrv.shutdown().await;
        }
    });
    drop(pages);
    match stopped.await {
        Ok(()) => Ok(()),
        Err(_) => Err(Exit::error(EXIT_ERROR, format!("the stop took longer than {} s", limit.as_secs()))),
    }
}

/// What the metrics page shows of the broker.
fn pages(broker: &Arc<Broker>) -> Pages {
    let metrics = Registry::new();
    let shown = broker.clone();
    metrics.collect(move |page| metrics_page::collect(&shown, page));
    let ready = broker.clone();
    Pages {
        metrics: Arc::new(metrics),
        healthy: Box::new(|| Ok(())),
        ready: Box::new(move || match ready.store.stats() {
            stats if stats.writable => Ok(()),
            stats if stats.disk_full => Err("the disk is full".to_owned()),
            _ => Err("the store takes no messages".to_owned()),
        }),
    }
}

fn failed(error: impl std::fmt::Display) -> Exit {
    Exit::error(EXIT_ERROR, error)
}
