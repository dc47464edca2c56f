//! Java system properties that change what a server does. Here they are keys like any other, for the file or `-D`.

crate::config_enum! {
    /// How the headers of a server's own requests are encoded. Answers always use the encoding of the request.
    pub enum SerializeType {
        "JSON" Json,
        "ROCKETMQ" RocketMq,
    }
}

impl SerializeType {
    fn from_env() -> SerializeType {
        match crate::home::env("ROCKETMQ_SERIALIZE_TYPE").as_deref() {
            Some("ROCKETMQ") => SerializeType::RocketMq,
            _ => SerializeType::Json,
        }
    }
}

crate::config! {
    /// Keys that are system properties in Java.
    pub struct SystemProperties {
        /// Largest frame in bytes that a connection may send; a larger one closes it.
        "com.rocketmq.remoting.frameMaxLength" frame_max_length: u32 = 16_777_216, fixed;
        /// Encoding of the headers of the server's own requests.
        "rocketmq.serialize.type" serialize_type: SerializeType = SerializeType::from_env() => "env ROCKETMQ_SERIALIZE_TYPE, else JSON", fixed;
    }
}
