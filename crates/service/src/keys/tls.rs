//! TLS keys. In Java they are system properties, and the file named by `tls.config.file` overrides them. Here the `-c`
//! file and `-D` may set them too.

use std::path::Path;

use crate::config::{Config as _, ConfigError};

crate::config_enum! {
    /// Which connections a server takes.
    pub enum TlsMode {
        /// Plain ones only.
        "disabled" Disabled,
        /// Both; the first byte decides.
        "permissive" Permissive,
        /// TLS only.
        "enforcing" Enforcing,
    }
}

crate::config_enum! {
    /// Whether a client must show a certificate.
    pub enum ClientAuth {
        "none" None,
        "optional" Optional,
        "require" Require,
    }
}

crate::config! {
    /// Keys of TLS on the remoting port.
    pub struct TlsSystemConfig {
        /// Speak TLS to name servers and brokers.
        "tls.enable" enable: bool = false, fixed;
        /// Generate a certificate at start and trust everybody; the paths below are then ignored.
        "tls.test.mode.enable" test_mode_enable: bool = true, fixed;
        /// Which connections are taken: plain, both, or TLS.
        "tls.server.mode" server_mode: TlsMode = TlsMode::Permissive => "permissive", fixed;
        /// Whether clients must show a certificate.
        "tls.server.need.client.auth" server_need_client_auth: ClientAuth = ClientAuth::None => "none", fixed;
        /// PEM file of the server's key. Read again when it changes.
        "tls.server.keyPath" server_key_path: Option<String> = None, fixed;
        /// Password of that key.
        "tls.server.keyPassword" server_key_password: Option<String> = None, fixed;
        /// PEM file of the server's certificate chain. Read again when it changes.
        "tls.server.certPath" server_cert_path: Option<String> = None, fixed;
        /// Verify client certificates against `tls.server.trustCertPath`; otherwise any is trusted.
        "tls.server.authClient" server_auth_client: bool = false, fixed;
        /// PEM file of the authorities that client certificates are verified against. Read again when it changes.
        "tls.server.trustCertPath" server_trust_cert_path: Option<String> = None, fixed;
        /// PEM file of the key shown to other servers.
        "tls.client.keyPath" client_key_path: Option<String> = None, fixed;
        /// Password of that key.
        "tls.client.keyPassword" client_key_password: Option<String> = None, fixed;
        /// PEM file of the certificate chain shown to other servers.
        "tls.client.certPath" client_cert_path: Option<String> = None, fixed;
        /// Verify the certificates of other servers against `tls.client.trustCertPath`.
        "tls.client.authServer" client_auth_server: bool = false, fixed;
        /// PEM file of the authorities that other servers are verified against.
        "tls.client.trustCertPath" client_trust_cert_path: Option<String> = None, fixed;
        /// Properties file that overrides the keys above, except `tls.enable` and `tls.server.mode`.
        "tls.config.file" config_file: String = "/etc/rocketmq/tls.properties".into() => "/etc/rocketmq/tls.properties", fixed;
    }
}

impl TlsSystemConfig {
    /// Reads `tls.config.file` over the values, if the file is there.
    pub fn apply_file(&mut self) -> Result<(), ConfigError> {
        let path = Path::new(&self.config_file).to_path_buf();
        if !path.exists() {
            return Ok(());
        }
        let document = crate::config::read(&path)?;
        let mut bad = Vec::new();
        for entry in document.entries() {
            let excluded = matches!(entry.key.as_str(), "tls.enable" | "tls.server.mode" | "tls.config.file");
            if !excluded && let Err(error) = self.set(&entry.key, &entry.value) {
                bad.push((format!("{}:{}", path.display(), entry.line), error));
            }
        }
        if bad.is_empty() { Ok(()) } else { Err(ConfigError::Values(bad)) }
    }
}
