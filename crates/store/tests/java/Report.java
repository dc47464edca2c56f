import java.io.File;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.zip.CRC32;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.ConsumeQueueExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageFilter;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** Prints what a reader can learn of a store. Its Rust counterpart prints the same lines. */
class Report {
    /** Where a record says at which place in the log it lies. */
    static final int PHYSICAL_OFFSET_AT = 28;

    static final String TAGS = "Tag1";

    final DefaultMessageStore store;
    final String root;
    final int step;
    long total;

    Report(DefaultMessageStore store, String root, int step) {
        this.store = store;
        this.root = root;
        this.step = step;
    }

    void print() throws Exception {
        System.out.println("log " + store.getMinPhyOffset() + " " + store.getMaxPhyOffset());
        TreeMap<String, TreeSet<Integer>> topics = new TreeMap<>();
        for (String kind : new String[] {"consumequeue", "batchconsumequeue"}) {
            File[] folders = new File(root, kind).listFiles(File::isDirectory);
            for (File topic : folders == null ? new File[0] : folders) {
                for (File queue : topic.listFiles(File::isDirectory)) {
                    topics.computeIfAbsent(topic.getName(), t -> new TreeSet<>()).add(Integer.parseInt(queue.getName()));
                }
            }
        }
        for (String topic : topics.keySet()) {
            Set<String> keys = new TreeSet<>(java.util.Arrays.asList("all5", "all99", "none"));
            for (int queue : topics.get(topic)) {
                queue(topic, queue, keys);
                tagged(topic, queue);
                times(topic, queue);
            }
            for (String key : keys) {
                found("key " + topic + " " + key, store.queryMessage(topic, key, 1000000, 0, Long.MAX_VALUE));
            }
            if (Version.FIVE) {
                found("tags " + topic, Version.tagged(store, topic, TAGS));
            }
        }
        System.out.println("total " + total);
    }

    /** Range, messages, CRC of all record bytes, CRC of all tags codes. */
    private void queue(String topic, int queue, Set<String> keys) throws Exception {
        long min = first(topic, queue);
        long max = store.getMaxOffsetInQueue(topic, queue);
        CRC32 crc = new CRC32();
        TagsCodes codes = new TagsCodes();
        long count = 0;
        for (long offset = min; offset < max;) {
            GetMessageResult got = store.getMessage("g", topic, queue, offset, 32, codes);
            for (SelectMappedBufferResult part : got.getMessageMapedList()) {
                ByteBuffer bytes = part.getByteBuffer();
                if (count++ % step == 0) {
                    keysOf(bytes.duplicate(), keys);
                }
                crc.update(bytes);
            }
            long next = got.getNextBeginOffset();
            got.release();
            if (next <= offset) {
                break;
            }
            offset = next;
        }
        if (!topic.equals(Workload.COMPACTED)) {
            total += count;
        }
        System.out.println("queue " + topic + " " + queue + " " + min + " " + max + " " + count + " " + crc.getValue() + " "
            + codes.crc.getValue());
    }

    private static void keysOf(ByteBuffer record, Set<String> keys) {
        MessageExt message = MessageDecoder.decode(record.duplicate(), false, false);
        if (message == null) {
            byte[] raw = new byte[Math.min(64, record.remaining())];
            record.get(raw);
            throw new IllegalStateException("no record: " + record.remaining() + " " + java.util.Arrays.toString(raw));
        }
        String unique = message.getProperty("UNIQ_KEY");
        if (unique != null) {
            keys.add(unique);
        }
        if (message.getKeys() != null) {
            for (String key : message.getKeys().split(" ")) {
                keys.add(key);
            }
        }
    }

    /** Java says of a compacted queue what its consume queue still has; readers find messages before that. */
    private long first(String topic, int queue) {
        return topic.equals(Workload.COMPACTED) ? 0 : Version.min(store, topic, queue);
    }

    /** How many messages a reader gets who wants one tag, and the CRC of their bytes. */
    private void tagged(String topic, int queue) throws Exception {
        CRC32 crc = new CRC32();
        long count = 0;
        long max = store.getMaxOffsetInQueue(topic, queue);
        for (long offset = first(topic, queue); offset < max;) {
            GetMessageResult got = store.getMessage("g", topic, queue, offset, 32, new OneTag());
            for (SelectMappedBufferResult part : got.getMessageMapedList()) {
                crc.update(part.getByteBuffer());
                count++;
            }
            long next = got.getNextBeginOffset();
            got.release();
            if (next <= offset) {
                break;
            }
            offset = next;
        }
        System.out.println("tagged " + topic + " " + queue + " " + count + " " + crc.getValue());
    }

    /** The searches around nine messages from the first to the last. */
    private void times(String topic, int queue) throws Exception {
        if (topic.equals(Workload.COMPACTED)) {
            return;
        }
        long min = Version.min(store, topic, queue);
        long max = store.getMaxOffsetInQueue(topic, queue);
        System.out.println("earliest " + topic + " " + queue + " " + store.getMessageStoreTimeStamp(topic, queue, min));
        // RocketMQ 4 takes whichever neighbour is nearer.
        if (!Version.FIVE || max <= min) {
            return;
        }
        for (int k = 0; k <= 8; k++) {
            long at = min + (max - 1 - min) * k / 8;
            long stored = store.getMessageStoreTimeStamp(topic, queue, at);
            StringBuilder line = new StringBuilder("time " + topic + " " + queue + " " + at + " " + stored);
            for (long time = stored - 1; time <= stored + 1; time++) {
                line.append(" " + Version.offsetByTime(store, topic, queue, time, false));
                // The upper boundary of a batch queue gives anything, in Java.
                if (!topic.equals(Workload.BATCH_QUEUES)) {
                    line.append(" " + Version.offsetByTime(store, topic, queue, time, true));
                }
            }
            System.out.println(line);
        }
    }

    private void found(String line, QueryMessageResult found) {
        CRC32 crc = new CRC32();
        Set<Long> places = new TreeSet<>();
        for (ByteBuffer bytes : found.getMessageBufferList()) {
            // After a kill Java may have put a message in twice.
            if (places.add(bytes.getLong(PHYSICAL_OFFSET_AT))) {
                crc.update(bytes);
            }
        }
        found.release();
        System.out.println(line + " " + places.size() + " " + crc.getValue());
    }

    private static class OneTag implements MessageFilter {
        @Override
        public boolean isMatchedByConsumeQueue(Long tagsCode, ConsumeQueueExt.CqExtUnit extension) {
            return tagsCode == null || tagsCode == TAGS.hashCode();
        }

        @Override
        public boolean isMatchedByCommitLog(ByteBuffer record, Map<String, String> properties) {
            return true;
        }
    }

    /** Lets everything through and sums up what it was asked. */
    private static class TagsCodes implements MessageFilter {
        final CRC32 crc = new CRC32();

        @Override
        public boolean isMatchedByConsumeQueue(Long tagsCode, ConsumeQueueExt.CqExtUnit extension) {
            crc.update(ByteBuffer.allocate(8).putLong(0, tagsCode == null ? 0 : tagsCode));
            return true;
        }

        @Override
        public boolean isMatchedByCommitLog(ByteBuffer record, Map<String, String> properties) {
            return true;
        }
    }
}
