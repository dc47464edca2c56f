//! Keys that Java does not have.

crate::config! {
    /// Keys of this implementation, the same for every server.
    pub struct ServiceConfig {
        /// Address of the page server for /metrics, /healthz and /readyz, e.g. `0.0.0.0:5557`. Off when unset.
        "httpAddress" http_address: Option<String> = None => "", fixed;
        /// Least severe log lines: `error`, `warn`, `info`, `debug` or `trace`, or a list like
        /// `info,broker::pull=debug`. The variable ROCKETMQ_LOG wins.
        "logLevel" log_level: String = "info".into() => "info", fixed;
        /// Folder of the log file. Unset: the log goes to standard error.
        "logFolder" log_folder: Option<String> = None => "", fixed;
        /// Bytes after which a new log file is begun.
        "logFileSize" log_file_size: u64 = 134_217_728, fixed;
        /// Log files kept besides the current one.
        "logFileCount" log_file_count: u32 = 10, fixed;
        /// Most seconds an ordered stop may take before the process ends anyway.
        "stopSeconds" stop_seconds: u32 = 30, fixed;
    }
}
