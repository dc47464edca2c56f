import java.io.File;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** Java's own store on a directory: writes numbered messages, prints what every queue holds, ends in order or dies. */
public class StorePeer {
    public static void main(String[] args) throws Exception {
        String root = args[0];
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + File.separator + "commitlog");
        config.setMappedFileSizeCommitLog(1 << 20);
        config.setMappedFileSizeConsumeQueue(20 * 1000);
        config.setMaxHashSlotNum(5000);
        config.setMaxIndexNum(20000);
        config.setHaListenPort(Integer.getInteger("ha", 23012));
        config.setTimerWheelEnable(false);
        config.setEnableCompaction(false);
        config.setCleanFileForciblyEnable(false);
        config.setDiskMaxUsedSpaceRatio(95);
        BrokerConfig broker = new BrokerConfig();
        DefaultMessageStore store = new DefaultMessageStore(config, new BrokerStatsManager(broker),
            (topic, queue, offset, tags, time, bits, properties) -> { }, broker, new ConcurrentHashMap<String, TopicConfig>());
        if (!store.load()) {
            System.out.println("load failed");
            Runtime.getRuntime().halt(1);
        }
        store.start();
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
        boolean kill = false;
        for (int i = 1; i < args.length; i++) {
            switch (args[i]) {
                case "put":
                    put(store, Integer.parseInt(args[++i]));
                    break;
                case "report":
                    report(store, root);
                    break;
                case "kill":
                    kill = true;
                    break;
                default:
                    throw new IllegalArgumentException(args[i]);
            }
        }
        if (kill) {
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
        store.shutdown();
        System.exit(0);
    }

    static void put(DefaultMessageStore store, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            MessageExtBrokerInner message = new MessageExtBrokerInner();
            message.setTopic("T" + i % 3);
            message.setQueueId(i % 8);
            StringBuilder body = new StringBuilder("java " + i + " ");
            for (int n = 0; n < i % 50; n++) {
                body.append("0123456789");
            }
            message.setBody(body.toString().getBytes(StandardCharsets.UTF_8));
            message.setTags("Tag" + i % 5);
            message.setKeys("key" + i + " all" + i % 100);
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
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    /** One line per queue: topic, id, min, max, messages, CRC of all record bytes; then some key queries. */
    static void report(DefaultMessageStore store, String root) throws Exception {
        System.out.println("log " + store.getMinPhyOffset() + " " + store.getMaxPhyOffset());
        TreeMap<String, TreeMap<Integer, Boolean>> queues = new TreeMap<>();
        for (File topic : new File(root, "consumequeue").listFiles(File::isDirectory)) {
            for (File queue : topic.listFiles(File::isDirectory)) {
                queues.computeIfAbsent(topic.getName(), t -> new TreeMap<>()).put(Integer.parseInt(queue.getName()), true);
            }
        }
        for (String topic : queues.keySet()) {
            for (int queue : queues.get(topic).keySet()) {
                long min = store.getMinOffsetInQueue(topic, queue);
                long max = store.getMaxOffsetInQueue(topic, queue);
                CRC32 crc = new CRC32();
                long offset = min;
                int count = 0;
                while (offset < max) {
                    GetMessageResult got = store.getMessage("g", topic, queue, offset, 32, null);
                    for (SelectMappedBufferResult part : got.getMessageMapedList()) {
                        ByteBuffer bytes = part.getByteBuffer();
                        crc.update(bytes);
                        count++;
                    }
                    long next = got.getNextBeginOffset();
                    got.release();
                    if (next <= offset) {
                        break;
                    }
                    offset = next;
                }
                System.out.println(topic + " " + queue + " " + min + " " + max + " " + count + " " + crc.getValue());
            }
        }
        for (String key : new String[] {"key0", "key77", "all5", "all99", "rust3", "none"}) {
            for (String topic : queues.keySet()) {
                QueryMessageResult found = store.queryMessage(topic, key, 64, 0, Long.MAX_VALUE);
                List<Integer> sizes = new ArrayList<>();
                CRC32 crc = new CRC32();
                for (ByteBuffer bytes : found.getMessageBufferList()) {
                    sizes.add(bytes.remaining());
                    crc.update(bytes);
                }
                System.out.println("key " + topic + " " + key + " " + sizes.size() + " " + crc.getValue());
                found.release();
            }
        }
    }
}
