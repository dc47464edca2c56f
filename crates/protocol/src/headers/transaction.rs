//! Transactions.

crate::headers! {
    /// Asks END_TRANSACTION (37).
    pub struct EndTransactionRequest {
        topic: Option<String> => "topic",
        producer_group: String => "producerGroup",
        tran_state_table_offset: i64 => "tranStateTableOffset",
        commit_log_offset: i64 => "commitLogOffset",
        commit_or_rollback: i32 => "commitOrRollback",
        from_transaction_check: bool => "fromTransactionCheck" = false,
        msg_id: String => "msgId" = String::new(),
        transaction_id: Option<String> => "transactionId",
    }

    /// Asks CHECK_TRANSACTION_STATE (39).
    pub struct CheckTransactionStateRequest {
        topic: Option<String> => "topic",
        tran_state_table_offset: i64 => "tranStateTableOffset",
        commit_log_offset: i64 => "commitLogOffset",
        msg_id: Option<String> => "msgId",
        transaction_id: Option<String> => "transactionId",
        offset_msg_id: Option<String> => "offsetMsgId",
    }

    /// The header of the request of that name.
    pub struct CheckTransactionStateResponse {
        producer_group: String => "producerGroup",
        tran_state_table_offset: i64 => "tranStateTableOffset",
        commit_log_offset: i64 => "commitLogOffset",
        commit_or_rollback: i32 => "commitOrRollback",
    }

    /// Asks RESUME_CHECK_HALF_MESSAGE (323).
    pub struct ResumeCheckHalfMessageRequest {
        topic: Option<String> => "topic",
        msg_id: Option<String> => "msgId",
    }
}
