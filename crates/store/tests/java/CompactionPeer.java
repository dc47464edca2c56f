import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** Java's own store with a compacted topic of two queues: writes keyed messages, compacts, prints what readers get. */
public class CompactionPeer {
    static final String TOPIC = "Compacted";

    public static void main(String[] args) throws Exception {
        String root = args[0];
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + "/commitlog");
        config.setMappedFileSizeCommitLog(1 << 20);
        config.setMappedFileSizeConsumeQueue(20 * 1000);
        config.setMaxHashSlotNum(5000);
        config.setMaxIndexNum(20000);
        config.setHaListenPort(Integer.getInteger("ha", 23212));
        config.setTimerWheelEnable(false);
        config.setCleanFileForciblyEnable(false);
        config.setDiskMaxUsedSpaceRatio(95);
        config.setCompactionCqMappedFileSize(4600);
        config.setCompactionMappedFileSize(46000);
        BrokerConfig broker = new BrokerConfig();
        TopicConfig topic = new TopicConfig(TOPIC, 2, 2);
        topic.getAttributes().put("cleanup.policy", "COMPACTION");
        ConcurrentHashMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
        topics.put(TOPIC, topic);
        DefaultMessageStore store = new DefaultMessageStore(config, new BrokerStatsManager(broker),
            (name, queue, offset, tags, time, bits, properties) -> { }, broker, topics);
        if (!store.load()) {
            System.out.println("load failed");
            Runtime.getRuntime().halt(1);
        }
        store.start();
        settle(store);
        for (int i = 1; i < args.length; i++) {
            switch (args[i]) {
                case "put":
                    put(store, Integer.parseInt(args[++i]));
                    break;
                case "compact":
                    compact(store);
                    break;
                case "report":
                    report(store);
                    break;
                default:
                    throw new IllegalArgumentException(args[i]);
            }
        }
        store.shutdown();
        System.exit(0);
    }

    static void settle(DefaultMessageStore store) throws Exception {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    static void put(DefaultMessageStore store, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            MessageExtBrokerInner message = new MessageExtBrokerInner();
            message.setTopic(TOPIC);
            message.setQueueId(i % 2);
            StringBuilder body = new StringBuilder("java " + i + " ");
            for (int n = 0; n < i % 40; n++) {
                body.append("0123456789");
            }
            message.setBody(i % 11 == 0 ? new byte[0] : body.toString().getBytes(StandardCharsets.UTF_8));
            message.setTags("Tag" + i % 5);
            message.setKeys("key" + i * 7 % 90 + (i % 13 == 0 ? " more" : ""));
            message.setBornTimestamp(System.currentTimeMillis());
            message.setBornHost(new InetSocketAddress("127.0.0.1", 10000));
            message.setStoreHost(new InetSocketAddress("127.0.0.1", 10911));
            message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
            message.setTagsCode(message.getTags().hashCode());
            PutMessageResult result = store.putMessage(message);
            if (!result.isOk()) {
                throw new IllegalStateException(result.toString());
            }
        }
        settle(store);
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

    /** One line per queue: id, first and end of the range, messages, CRC of all record bytes as readers get them. */
    static void report(DefaultMessageStore store) throws Exception {
        for (int queue = 0; queue < 2; queue++) {
            CRC32 crc = new CRC32();
            long offset = 0;
            long min = 0;
            long max = 0;
            int count = 0;
            while (true) {
                GetMessageResult got = store.getMessage("g", TOPIC, queue, offset, 32, null);
                for (SelectMappedBufferResult part : got.getMessageMapedList()) {
                    ByteBuffer bytes = part.getByteBuffer();
                    crc.update(bytes);
                    count++;
                }
                min = got.getMinOffset();
                max = got.getMaxOffset();
                long next = got.getNextBeginOffset();
                got.release();
                if (next <= offset) {
                    break;
                }
                offset = next;
            }
            System.out.println("queue " + queue + " " + min + " " + max + " " + count + " " + crc.getValue());
        }
    }
}
