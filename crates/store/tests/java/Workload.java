import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/** The messages of one round; its Rust counterpart writes the same kinds. */
class Workload {
    static final String HALF = "RMQ_SYS_TRANS_HALF_TOPIC";
    static final String OPERATIONS = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
    static final String SCHEDULE = "SCHEDULE_TOPIC_XXXX";
    static final String BATCH_QUEUES = "BatchQueues";
    static final String COMPACTED = "Compacted";

    final DefaultMessageStore store;
    final String round;
    /** Records that got a place in a queue, one for each queue. */
    int queued;

    Workload(DefaultMessageStore store, String round) {
        this.store = store;
        this.round = round;
    }

    void put(int count) {
        for (int i = 0; queued < count; i++) {
            one(i);
        }
        System.out.println("queued " + queued);
    }

    private void one(int i) {
        switch (i % 20) {
            case 0:
                batch(i);
                return;
            case 1:
                delayed(i);
                return;
            case 2:
                transaction(i);
                return;
            case 3:
                oldTransaction(i);
                return;
            default:
                break;
        }
        Version.Message message = message("T" + i % 3, i);
        switch (i % 20) {
            case 4:
                message.setBornHost(new InetSocketAddress("2001:db8::1", 10000));
                break;
            case 5:
                message.setBornHost(new InetSocketAddress("2001:db8::1", 10000));
                message.setStoreHost(new InetSocketAddress("fe80::2", 10911));
                break;
            case 6:
                message.setSysFlag(MessageSysFlag.COMPRESSED_FLAG);
                break;
            case 7:
                message.getProperties().clear();
                break;
            case 8:
                message.setBody(new byte[2000 + i % 3000]);
                break;
            case 9:
                message.setTags("标签" + i % 3);
                message.setKeys("键" + i % 1000 + " 💡" + i);
                break;
            case 10:
                message.setTopic(longTopic());
                message.setReconsumeTimes(i % 16);
                break;
            case 11:
            case 12:
                batchQueue(message, i);
                break;
            case 13:
                compacted(message, i);
                break;
            case 14:
                light(message, i);
                break;
            default:
                break;
        }
        put(message);
        // Of a compacted queue a round leaves what it likes.
        queued += message.getTopic().equals(COMPACTED) ? 0 : 1;
    }

    /** Of three messages in a record, or of one. */
    private void batchQueue(Version.Message message, int i) {
        if (!Version.FIVE) {
            return;
        }
        message.setTopic(BATCH_QUEUES);
        message.setQueueId(i / 20 % 8);
        if (i % 20 == 11) {
            message.setSysFlag(MessageSysFlag.NEED_UNWRAP_FLAG | MessageSysFlag.INNER_BATCH_FLAG);
            MessageAccessor.putProperty(message, "INNER_NUM", "3");
        }
    }

    private void compacted(Version.Message message, int i) {
        if (Version.FIVE) {
            message.setTopic(COMPACTED);
            message.setQueueId(i / 20 % 2);
            message.setKeys("key" + i / 20 % 90);
        }
    }

    private void light(Version.Message message, int i) {
        if (store.getMessageStoreConfig().isEnableConsumeQueueExt()) {
            String names = "%LMQ%a,%LMQ%b" + i / 20 % 5;
            MessageAccessor.putProperty(message, "INNER_MULTI_DISPATCH", names);
            queued += 2;
        }
    }

    /** Longer than the records of RocketMQ 4 can say. */
    private static String longTopic() {
        StringBuilder name = new StringBuilder("%RETRY%");
        if (Version.FIVE) {
            for (int i = 0; i < 200; i++) {
                name.append('g');
            }
        }
        return name.append("group").toString();
    }

    private Version.Message message(String topic, int i) {
        Version.Message message = new Version.Message();
        message.setTopic(topic);
        message.setQueueId(i % 8);
        StringBuilder body = new StringBuilder(round + " " + i + " ");
        for (int n = 0; n < i % 50; n++) {
            body.append("0123456789");
        }
        message.setBody(body.toString().getBytes(StandardCharsets.UTF_8));
        message.setFlag(i % 7);
        message.setTags("Tag" + i % 5);
        message.setKeys(round + "-" + i + " all" + i % 100);
        MessageAccessor.putProperty(message, MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, "U" + round + i);
        hosts(message);
        return message;
    }

    private static void hosts(MessageExt message) {
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(new InetSocketAddress("127.0.0.1", 10000));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 10911));
    }

    private PutMessageResult put(Version.Message message) {
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        if (message.getTags() != null) {
            message.setTagsCode(message.getTags().hashCode());
        }
        return taken(store.putMessage(message));
    }

    private static PutMessageResult taken(PutMessageResult result) {
        if (!result.isOk()) {
            throw new IllegalStateException(result.toString());
        }
        return result;
    }

    private void batch(int i) {
        List<Message> items = new ArrayList<>();
        for (int n = 0; n < 5; n++) {
            items.add(message("Batches", i + n));
        }
        MessageExtBatch batch = new MessageExtBatch();
        batch.setTopic("Batches");
        batch.setQueueId(i / 20 % 8);
        batch.setBody(MessageDecoder.encodeMessages(items));
        hosts(batch);
        taken(store.putMessages(batch));
        queued += items.size();
    }

    /** As the broker leaves a delayed message. RocketMQ 4 gives it this form by itself, also when it has it already. */
    private void delayed(int i) {
        int level = 1 + i % 18;
        Version.Message message = message(SCHEDULE, i);
        message.setQueueId(level - 1);
        message.setDelayTimeLevel(level);
        MessageAccessor.putProperty(message, MessageConst.PROPERTY_REAL_TOPIC, "T0");
        MessageAccessor.putProperty(message, MessageConst.PROPERTY_REAL_QUEUE_ID, "" + i % 8);
        put(message);
        queued++;
    }

    /** A half message, and for most of them what the commit leaves. */
    private void transaction(int i) {
        Version.Message half = message(HALF, i);
        half.setQueueId(0);
        MessageAccessor.putProperty(half, MessageConst.PROPERTY_REAL_TOPIC, "T1");
        MessageAccessor.putProperty(half, MessageConst.PROPERTY_REAL_QUEUE_ID, "" + i % 8);
        MessageAccessor.putProperty(half, MessageConst.PROPERTY_TRANSACTION_PREPARED, "true");
        PutMessageResult put = put(half);
        queued++;
        if (i % 3 == 0) {
            return;
        }
        Version.Message committed = message("T1", i);
        committed.setSysFlag(MessageSysFlag.TRANSACTION_COMMIT_TYPE);
        committed.setPreparedTransactionOffset(put.getAppendMessageResult().getWroteOffset());
        put(committed);
        Version.Message operation = message(OPERATIONS, i);
        operation.setQueueId(0);
        operation.setTags("d");
        operation.setBody(Long.toString(put.getAppendMessageResult().getLogicsOffset()).getBytes(StandardCharsets.UTF_8));
        put(operation);
        queued += 2;
    }

    /** As brokers before 4.3 kept them: in the log, in no queue. */
    private void oldTransaction(int i) {
        for (int type : new int[] {MessageSysFlag.TRANSACTION_PREPARED_TYPE, MessageSysFlag.TRANSACTION_ROLLBACK_TYPE}) {
            Version.Message message = message("Old", i);
            message.setSysFlag(type);
            put(message);
        }
        Version.Message committed = message("Old", i);
        committed.setSysFlag(MessageSysFlag.TRANSACTION_COMMIT_TYPE);
        put(committed);
        queued++;
    }
}
