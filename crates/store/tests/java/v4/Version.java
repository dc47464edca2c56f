import java.io.IOException;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** What the store of RocketMQ 4.9 names differently from that of 5. */
class Version {
    /** Its search by time takes whichever neighbour is nearer. */
    static final boolean SEARCHES_BOTH_NEIGHBOURS = false;

    static class Message extends MessageExtBrokerInner { }

    static DefaultMessageStore store(MessageStoreConfig config, boolean propertyCrc) throws IOException {
        return new DefaultMessageStore(config, new BrokerStatsManager("C", false),
            (topic, queue, offset, tags, time, bits, properties) -> { }, new BrokerConfig());
    }

    static Object queueCleaner(DefaultMessageStore store) {
        return store;
    }

    static final String CLEAN_QUEUES = "cleanFilesPeriodically";

    static long offsetByTime(DefaultMessageStore store, String topic, int queue, long time, boolean upper) {
        throw new UnsupportedOperationException();
    }
}
