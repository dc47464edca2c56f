import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** What the store of RocketMQ 5 names differently from that of 4.9. */
class Version {
    static final boolean FIVE = true;

    static final ConcurrentMap<String, TopicConfig> TOPICS = new ConcurrentHashMap<>();

    static {
        topic(Workload.BATCH_QUEUES, "queue.type", "BatchCQ");
        topic(Workload.COMPACTED, "cleanup.policy", "COMPACTION");
    }

    private static void topic(String name, String attribute, String value) {
        TopicConfig topic = new TopicConfig(name, 8, 8);
        topic.getAttributes().put(attribute, value);
        TOPICS.put(name, topic);
    }

    static class Message extends MessageExtBrokerInner { }

    static DefaultMessageStore store(MessageStoreConfig config, boolean propertyCrc) throws IOException {
        config.setTimerWheelEnable(false);
        // With it, readers of a compacted log that was there at the start do not see its old files once it has a new one.
        config.setSearchBcqByCacheEnable(false);
        config.setCompactionScheduleInternal(24 * 3600 * 1000);
        config.setEnabledAppendPropCRC(propertyCrc);
        BrokerConfig broker = new BrokerConfig();
        return new DefaultMessageStore(config, new BrokerStatsManager(broker),
            (topic, queue, offset, tags, time, bits, properties) -> { }, broker, TOPICS);
    }

    static void small(MessageStoreConfig config) {
        config.setMapperFileSizeBatchConsumeQueue(46 * 1000);
        config.setCompactionCqMappedFileSize(46 * 500);
        config.setCompactionMappedFileSize(256 << 10);
    }

    static void light(MessageStoreConfig config) {
        config.setEnableLmq(true);
        config.setEnableMultiDispatch(true);
    }

    /** What the schedule does, now. */
    static void compact(DefaultMessageStore store) throws Exception {
        Field table = store.getCompactionStore().getClass().getDeclaredField("compactionLogTable");
        table.setAccessible(true);
        for (Object log : ((Map<?, ?>) table.get(store.getCompactionStore())).values()) {
            Method round = log.getClass().getDeclaredMethod("doCompaction");
            round.setAccessible(true);
            round.invoke(log);
        }
    }

    /** The query by the whole text of a message's tags. */
    static QueryMessageResult tagged(DefaultMessageStore store, String topic, String tags) {
        return store.queryMessage(topic, tags, 1000000, 0, Long.MAX_VALUE, MessageConst.INDEX_TAG_TYPE, null);
    }

    /** Stops what changes the store by itself: here nothing does. */
    static void quiet(DefaultMessageStore store) { }

    /** The object whose cleaning of queues and index follows that of the commit log, and the name of its pass. */
    static Object queueCleaner(DefaultMessageStore store) {
        return store.getQueueStore();
    }

    static final String CLEAN_QUEUES = "cleanQueueFilesPeriodically";

    static long min(DefaultMessageStore store, String topic, int queue) {
        return store.getMinOffsetInQueue(topic, queue);
    }

    static long offsetByTime(DefaultMessageStore store, String topic, int queue, long time, boolean upper) throws Exception {
        long found = store.getOffsetInQueueByTime(topic, queue, time, upper ? BoundaryType.UPPER : BoundaryType.LOWER);
        if (topic.equals(Workload.BATCH_QUEUES)) {
            return firstAt(store, topic, queue, time, found);
        }
        return found;
    }

    /** At the end of a batch queue's file Java finds the last record instead of the first one at or after the time. */
    private static long firstAt(DefaultMessageStore store, String topic, int queue, long time, long near) throws Exception {
        long at = near;
        long min = store.getMinOffsetInQueue(topic, queue);
        long max = store.getMaxOffsetInQueue(topic, queue);
        while (at > min && store.getMessageStoreTimeStamp(topic, queue, at - 1) >= time) {
            at--;
        }
        while (at < max && store.getMessageStoreTimeStamp(topic, queue, at) < time) {
            at++;
        }
        return at;
    }
}
