//! What a producer hears: the fields of a success, and the code and remark for each way a put can fail.

use std::borrow::Cow;
use std::net::SocketAddr;

use protocol::FieldSink;
use protocol::frame::FieldWriter;
use protocol::record::{MessageId, property};
use protocol::response_code as code;
use remoting::{Reply, WriteFields};
use store::{FlushError, PutError, PutStatus, WriteError};

use crate::broker::Broker;
use crate::context::Refusal;

/// Where the messages of one send lie in the commit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Places {
    One(u64),
    Many(Vec<u64>),
    /// One record for all messages of an inner batch.
    Inner(u64),
}

/// The fields of the answer to a stored send.
pub struct SentFields<'a> {
    pub region: &'a str,
    pub trace_on: bool,
    pub store_host: SocketAddr,
    pub places: &'a Places,
    pub queue_id: i32,
    pub queue_offset: i64,
    /// The unique key the message is stored with; none for a batch without one.
    pub transaction_id: Option<&'a str>,
}

impl WriteFields for SentFields<'_> {
    fn write_fields(&self, out: &mut FieldWriter<'_>) {
        match self.places {
            Places::One(place) | Places::Inner(place) => {
                out.text("msgId", MessageId::new(self.store_host, *place as i64).as_str())
            }
            Places::Many(places) => {
                let ids: Vec<String> =
                    places.iter().map(|place| MessageId::new(self.store_host, *place as i64).to_string()).collect();
                out.text("msgId", &ids.join(","));
            }
        }
        out.int("queueId", self.queue_id.into());
        out.int("queueOffset", self.queue_offset);
        if let Some(id) = self.transaction_id {
            out.text("transactionId", id);
            if matches!(self.places, Places::Inner(_)) {
                out.text("batchUniqId", id);
            }
        }
        Common { region: self.region, trace_on: self.trace_on }.write_fields(out);
    }
}

/// The two fields that answers to sends carry whether they succeeded or not.
struct Common<'a> {
    region: &'a str,
    trace_on: bool,
}

impl WriteFields for Common<'_> {
    fn write_fields(&self, out: &mut FieldWriter<'_>) {
        out.text(property::MSG_REGION, self.region);
        out.flag(property::TRACE_ON, self.trace_on);
    }
}

/// Refuses a send.
pub fn refuse(broker: &Broker, reply: Reply, refusal: &Refusal) {
    let config = broker.config();
    let fields = Common { region: &config.region_id, trace_on: config.trace_on };
    reply.send_parts(refusal.code, Some(&refusal.remark), &fields, ());
}

/// Why nothing was put, in Java's words.
pub fn put_refusal(broker: &Broker, error: &PutError) -> Refusal {
    refusal(broker, error.put_status())
}

fn refusal(broker: &Broker, status: PutStatus) -> Refusal {
    match status {
        PutStatus::MessageIllegal | PutStatus::PropertiesSizeExceeded => illegal(broker),
        PutStatus::ServiceNotAvailable => not_available(broker),
        PutStatus::OsPageCacheBusy => {
            Refusal::new(code::SYSTEM_BUSY, "[PC_SYNCHRONIZED]broker busy, start flow control for a while")
        }
        PutStatus::LmqConsumeQueueNumExceeded => Refusal::system(
            "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]broker config enableLmq and enableMultiDispatch, lmq consumeQueue num exceed maxLmqConsumeQueueNum config num, default limit 2w.",
        ),
        PutStatus::CreateMappedFileFailed => Refusal::system("create mapped file failed, server is busy or broken."),
        PutStatus::UnknownError => Refusal::system("UNKNOWN_ERROR"),
    }
}

/// The name Java gives a put status, which the answer to a failed send-back carries.
pub fn put_status_name(status: PutStatus) -> &'static str {
    match status {
        PutStatus::MessageIllegal => "MESSAGE_ILLEGAL",
        PutStatus::PropertiesSizeExceeded => "PROPERTIES_SIZE_EXCEEDED",
        PutStatus::ServiceNotAvailable => "SERVICE_NOT_AVAILABLE",
        PutStatus::OsPageCacheBusy => "OS_PAGE_CACHE_BUSY",
        PutStatus::LmqConsumeQueueNumExceeded => "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
        PutStatus::CreateMappedFileFailed => "CREATE_MAPPED_FILE_FAILED",
        PutStatus::UnknownError => "UNKNOWN_ERROR",
    }
}

/// The message or its properties are not what can be stored.
pub fn illegal(broker: &Broker) -> Refusal {
    let limit = broker.store_config().max_message_size;
    Refusal::new(
        code::MESSAGE_ILLEGAL,
        format!(
            "the message is illegal, maybe msg body or properties length not matched. msg body length limit {limit}B, msg properties length limit 32KB."
        ),
    )
}

/// The group this message was appended with did not reach the disk.
pub fn write_refusal(broker: &Broker, error: &WriteError) -> Refusal {
    tracing::debug!(%error, "send refused");
    refusal(broker, error.put_status())
}

/// The code and remark after a sync flush; with code 0 and FLUSH_DISK_TIMEOUT the message is stored.
pub fn after_flush(broker: &Broker, result: &Result<(), FlushError>) -> Result<i32, Refusal> {
    match result {
        Ok(()) => Ok(code::SUCCESS),
        Err(FlushError::Timeout) => Ok(code::FLUSH_DISK_TIMEOUT),
        Err(FlushError::Write(error)) => Err(write_refusal(broker, error)),
        Err(FlushError::Closed) => Err(not_available(broker)),
        Err(FlushError::Failed(what)) => Err(Refusal::system(format!("flushing failed: {what}"))),
    }
}

fn not_available(broker: &Broker) -> Refusal {
    let stats = broker.store.stats();
    let remark = format!(
        "service not available now. It may be caused by one of the following reasons: the broker's disk is full [CL: {:5.2} CQ: {:5.2} INDEX: {:5.2}], messages are put to the slave, message store has been shut down, etc.",
        stats.commit_log_disk_ratio, stats.consume_queue_disk_ratio, stats.consume_queue_disk_ratio
    );
    Refusal::new(code::SERVICE_NOT_AVAILABLE, Cow::Owned(remark))
}
