import java.io.IOException;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** What the store of RocketMQ 4.9 names differently from that of 5. */
class Version {
    static final boolean FIVE = false;

    static class Message extends MessageExtBrokerInner { }

    static DefaultMessageStore store(MessageStoreConfig config, boolean propertyCrc) throws IOException {
        return new DefaultMessageStore(config, new BrokerStatsManager("C", false),
            (topic, queue, offset, tags, time, bits, properties) -> { }, new BrokerConfig());
    }

    static void small(MessageStoreConfig config) { }

    static void light(MessageStoreConfig config) { }

    static void compact(DefaultMessageStore store) { }

    static QueryMessageResult tagged(DefaultMessageStore store, String topic, String tags) {
        throw new UnsupportedOperationException();
    }

    /** Delivered delayed messages would be more than what the workload wrote. */
    static void quiet(DefaultMessageStore store) {
        store.getScheduleMessageService().shutdown();
    }

    static Object queueCleaner(DefaultMessageStore store) {
        return store;
    }

    static final String CLEAN_QUEUES = "cleanFilesPeriodically";

    /** The first message that is there. RocketMQ 4 itself forgets the minimum of a queue whose messages were all removed. */
    static long min(DefaultMessageStore store, String topic, int queue) {
        long at = store.getMinOffsetInQueue(topic, queue);
        long max = store.getMaxOffsetInQueue(topic, queue);
        while (at < max && store.getMessageStoreTimeStamp(topic, queue, at) < 0) {
            at++;
        }
        return at;
    }

    static long offsetByTime(DefaultMessageStore store, String topic, int queue, long time, boolean upper) {
        throw new UnsupportedOperationException();
    }
}
