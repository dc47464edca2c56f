import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** What the store of RocketMQ 5 names differently from that of 4.9. */
class Version {
    static final boolean FIVE = true;

    static final ConcurrentMap<String, TopicConfig> TOPICS = new ConcurrentHashMap<>();

    static class Message extends MessageExtBrokerInner { }

    static DefaultMessageStore store(MessageStoreConfig config, boolean propertyCrc) throws IOException {
        config.setTimerWheelEnable(false);
        config.setEnableCompaction(false);
        config.setEnabledAppendPropCRC(propertyCrc);
        BrokerConfig broker = new BrokerConfig();
        return new DefaultMessageStore(config, new BrokerStatsManager(broker),
            (topic, queue, offset, tags, time, bits, properties) -> { }, broker, TOPICS);
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

    static long offsetByTime(DefaultMessageStore store, String topic, int queue, long time, boolean upper) {
        return store.getOffsetInQueueByTime(topic, queue, time, upper ? BoundaryType.UPPER : BoundaryType.LOWER);
    }
}
