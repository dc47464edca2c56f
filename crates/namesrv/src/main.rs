//! `mqnamesrv`: the name server as a process.

use std::process::ExitCode;
use std::time::Duration;

use namesrv::Namesrv;
use service::cli::{CommandLine, EXIT_ERROR, Exit, command};
use service::config::Loaded;
use service::http::PageServer;
use service::keys::NamesrvSettings;
use service::stop::Stop;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.leave(),
    }
}

fn run() -> Result<(), Exit> {
    let line = CommandLine::parse(command("mqnamesrv", false), std::env::args_os())?;
    let Loaded { live, warnings } = NamesrvSettings::load(&line)?;
    let config = live.snapshot();
    service::logging::start("mqnamesrv", &config.service).map_err(failed)?;
    service::open_files::raise_limit();
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    if config.namesrv.cluster_test {
        tracing::warn!("clusterTest is not supported: unknown topics are not looked up in another environment");
    }
    if config.namesrv.enable_controller_in_namesrv {
        tracing::warn!("enableControllerInNamesrv is not supported yet: no controller runs in this process");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(serve(live))
}

async fn serve(live: service::config::Live<NamesrvSettings>) -> Result<(), Exit> {
    let stop = Stop::new();
    stop.listen_to_signals().map_err(failed)?;
    let config = live.snapshot();
    let server = Namesrv::start(live).map_err(failed)?;
    let pages = match &config.service.http_address {
        Some(address) => {
            let pages = PageServer::bind(address, server.pages()).await;
            Some(pages.map_err(|error| Exit::error(EXIT_ERROR, format!("httpAddress {address}: {error}")))?)
        }
        None => None,
    };
    // Scripts wait for the words "boot success".
    println!(
        "The Name Server boot success. serializeType=JSON, address {}:{}",
        config.netty.bind_address,
        server.local_addr().port()
    );
    let reason = stop.requested().await;
    tracing::info!("stopping: {reason}");
    let limit = Duration::from_secs(config.service.stop_seconds.into());
    if tokio::time::timeout(limit, server.shutdown()).await.is_err() {
        tracing::warn!("the stop took too long; ending with connections open");
    }
    drop(pages);
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Exit {
    Exit::error(EXIT_ERROR, error)
}
