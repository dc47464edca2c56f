package vectors;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageBatch;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageVersion;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.MessageExtEncoder;
import org.apache.rocketmq.store.PutMessageContext;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** Stored records as the broker's encoder writes them, batches as the client sends them, and what the decoder makes of both. */
final class Records {
    private static final int QUEUE_OFFSET_AT = 20;
    private static final int PHYSICAL_OFFSET_AT = 28;
    private static final long BORN = 1700000000123L;
    private static final long STORED = 1700000000456L;
    private static final byte[] BODY = "Hello 消息".getBytes(StandardCharsets.UTF_8);

    private Records() {
    }

    static void write(Manifest to) throws Exception {
        stored(to, "v1-ipv4", inner("orders", "10.1.2.3", "127.0.0.1"), BODY);
        stored(to, "v1-born-ipv6", inner("orders", "2001:db8::7", "127.0.0.1"), BODY);
        stored(to, "v1-store-ipv6", inner("orders", "10.1.2.3", "::1"), BODY);
        stored(to, "v1-both-ipv6", inner("orders", "fe80::1234", "2001:db8::1"), BODY);

        MessageExtBrokerInner bare = inner("orders", "10.1.2.3", "127.0.0.1");
        bare.setPropertiesString("");
        bare.setBody(new byte[0]);
        stored(to, "v1-no-body-no-properties", bare, new byte[0]);

        MessageExtBrokerInner longest = inner("t".repeat(127), "10.1.2.3", "127.0.0.1");
        stored(to, "v1-topic-127", longest, BODY);
        MessageExtBrokerInner wide = inner("t".repeat(128), "10.1.2.3", "127.0.0.1");
        wide.setVersion(MessageVersion.MESSAGE_VERSION_V2);
        stored(to, "v2-topic-128", wide, BODY);
        MessageExtBrokerInner short2 = inner("主题", "2001:db8::7", "::1");
        short2.setVersion(MessageVersion.MESSAGE_VERSION_V2);
        stored(to, "v2-unicode-topic-ipv6", short2, BODY);

        for (CompressionType type : CompressionType.values()) {
            byte[] plain = "compress me ".repeat(50).getBytes(StandardCharsets.UTF_8);
            MessageExtBrokerInner packed = inner("orders", "10.1.2.3", "127.0.0.1");
            packed.setBody(CompressorFactory.getCompressor(type).compress(plain, 5));
            packed.setSysFlag(MessageSysFlag.COMPRESSED_FLAG | type.getCompressionFlag());
            stored(to, "v1-compressed-" + type, packed, plain);
        }

        MessageExtBrokerInner half = inner("RMQ_SYS_TRANS_HALF_TOPIC", "10.1.2.3", "127.0.0.1");
        half.setSysFlag(MessageSysFlag.TRANSACTION_PREPARED_TYPE);
        half.setPreparedTransactionOffset(123456789012L);
        stored(to, "v1-transaction-prepared", half, BODY);
        MessageExtBrokerInner again = inner("%RETRY%consumers", "10.1.2.3", "127.0.0.1");
        again.setReconsumeTimes(3);
        again.setFlag(-5);
        again.setSysFlag(MessageSysFlag.MULTI_TAGS_FLAG);
        stored(to, "v1-retry", again, BODY);

        withPropertyCrc(to);
        batches(to);
        clientEncode(to);
    }

    private static MessageExtBrokerInner inner(String topic, String born, String store) throws Exception {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(topic);
        message.setQueueId(3);
        message.setFlag(9);
        message.setBody(BODY);
        message.setSysFlag(0);
        message.setBornTimestamp(BORN);
        message.setStoreTimestamp(STORED);
        message.setQueueOffset(4_294_967_296L + 5);
        message.setPropertiesString(MessageDecoder.messageProperties2String(properties()));
        message.setBornHost(address(born, 40123));
        message.setStoreHost(address(store, 10911));
        return message;
    }

    private static Map<String, String> properties() {
        Map<String, String> properties = new LinkedHashMap<>();
        properties.put("TAGS", "TagA");
        properties.put("KEYS", "k1 k2");
        properties.put("UNIQ_KEY", "7F0000011C0C18B4AAC21A8C9A5E0000");
        properties.put("名", "值");
        properties.put("DELAY", "3");
        return properties;
    }

    static SocketAddress address(String ip, int port) throws Exception {
        return new InetSocketAddress(InetAddress.getByName(ip), port);
    }

    private static void hosts(MessageExtBrokerInner message) {
        message.setSysFlag(message.getSysFlag());
        if (((InetSocketAddress) message.getBornHost()).getAddress().getAddress().length == 16) {
            message.setBornHostV6Flag();
        }
        if (((InetSocketAddress) message.getStoreHost()).getAddress().getAddress().length == 16) {
            message.setStoreHostAddressV6Flag();
        }
        message.setBodyCRC(UtilAll.crc32(message.getBody()));
    }

    private static void stored(Manifest to, String name, MessageExtBrokerInner message, byte[] plain) {
        hosts(message);
        byte[] bytes = encode(message, new MessageStoreConfig());
        to.add("stored/" + name, "record", bytes, decoded(bytes, plain));
    }

    private static byte[] encode(MessageExtBrokerInner message, MessageStoreConfig config) {
        MessageExtEncoder encoder = new MessageExtEncoder(64 * 1024, config);
        if (encoder.encode(message) != null) {
            throw new IllegalStateException("refused");
        }
        ByteBuffer buffer = encoder.getEncoderBuffer();
        byte[] bytes = new byte[buffer.getInt(0)];
        buffer.get(bytes);
        ByteBuffer.wrap(bytes).putLong(PHYSICAL_OFFSET_AT, 1_099_511_627_776L + 12345);
        return bytes;
    }

    /** enabledAppendPropCRC: the last property is a checksum over the record before it. */
    private static void withPropertyCrc(Manifest to) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setEnabledAppendPropCRC(true);
        MessageExtBrokerInner message = inner("orders", "10.1.2.3", "127.0.0.1");
        hosts(message);
        byte[] bytes = encode(message, config);
        int checked = bytes.length - CommitLog.CRC32_RESERVED_LEN;
        int crc = UtilAll.crc32(bytes, 0, checked);
        MessageDecoder.createCrc32(ByteBuffer.wrap(bytes, checked, CommitLog.CRC32_RESERVED_LEN), crc);
        Map<String, Object> expect = decoded(bytes, BODY);
        expect.put("recordCrcOver", checked);
        to.add("stored/v1-property-crc", "record", bytes, expect);
    }

    static Map<String, Object> decoded(byte[] bytes, byte[] plain) {
        MessageExt message = MessageDecoder.decode(ByteBuffer.wrap(bytes), true, false);
        Map<String, Object> expect = new LinkedHashMap<>();
        expect.put("totalSize", message.getStoreSize());
        expect.put("magic", ByteBuffer.wrap(bytes).getInt(4));
        expect.put("bodyCrc", message.getBodyCRC());
        expect.put("queueId", message.getQueueId());
        expect.put("flag", message.getFlag());
        expect.put("queueOffset", message.getQueueOffset());
        expect.put("physicalOffset", message.getCommitLogOffset());
        expect.put("sysFlag", message.getSysFlag());
        expect.put("bornTimestamp", message.getBornTimestamp());
        expect.put("bornHost", host(message.getBornHost()));
        expect.put("storeTimestamp", message.getStoreTimestamp());
        expect.put("storeHost", host(message.getStoreHost()));
        expect.put("reconsumeTimes", message.getReconsumeTimes());
        expect.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
        expect.put("body", HexFormat.of().formatHex(message.getBody() == null ? new byte[0] : message.getBody()));
        expect.put("plainBody", HexFormat.of().formatHex(plain));
        expect.put("topic", message.getTopic());
        expect.put("properties", message.getProperties() == null ? Map.of() : new TreeMap<>(message.getProperties()));
        expect.put("msgId", message.getMsgId());
        return expect;
    }

    static Map<String, Object> host(SocketAddress address) {
        InetSocketAddress inet = (InetSocketAddress) address;
        Map<String, Object> host = new LinkedHashMap<>();
        host.put("ip", HexFormat.of().formatHex(inet.getAddress().getAddress()));
        host.put("port", inet.getPort());
        return host;
    }

    private static void batches(Manifest to) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Message message = new Message("orders", "Tag" + i, "key" + i, ("body " + i).getBytes(StandardCharsets.UTF_8));
            message.setFlag(i);
            messages.add(message);
        }
        Message last = new Message("orders", new byte[0]);
        last.setWaitStoreMsgOK(true);
        messages.add(last);
        MessageBatch batch = MessageBatch.generateFromList(messages);
        byte[] wire = batch.encode();
        List<Object> expect = new ArrayList<>();
        for (Message message : MessageDecoder.decodeMessages(ByteBuffer.wrap(wire))) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("flag", message.getFlag());
            one.put("body", HexFormat.of().formatHex(message.getBody()));
            one.put("properties", new TreeMap<>(message.getProperties()));
            expect.add(one);
        }
        to.add("batch/client", "batch", Map.of(), wire, expect);

        MessageExtBatch sent = new MessageExtBatch();
        sent.setTopic("orders");
        sent.setQueueId(2);
        sent.setBody(wire);
        sent.setBornTimestamp(BORN);
        sent.setStoreTimestamp(STORED);
        sent.setBornHost(address("10.1.2.3", 40123));
        sent.setStoreHost(address("127.0.0.1", 10911));
        ByteBuffer encoded = new MessageExtEncoder(64 * 1024, new MessageStoreConfig()).encode(sent, new PutMessageContext("orders-2"));
        byte[] records = new byte[encoded.remaining()];
        encoded.get(records);
        long physical = 8192;
        List<Object> stored = new ArrayList<>();
        int at = 0;
        for (int i = 0; at < records.length; i++) {
            ByteBuffer in = ByteBuffer.wrap(records);
            int size = in.getInt(at);
            in.putLong(at + QUEUE_OFFSET_AT, 70L + i).putLong(at + PHYSICAL_OFFSET_AT, physical + at);
            byte[] one = java.util.Arrays.copyOfRange(records, at, at + size);
            stored.add(decoded(one, HexFormat.of().parseHex((String) ((Map<?, ?>) expect.get(i)).get("body"))));
            at += size;
        }
        to.add("batch/stored", "records", Map.of("batchHex", HexFormat.of().formatHex(wire), "firstQueueOffset", 70, "firstPhysicalOffset", physical),
            records, stored);
    }

    /** MessageDecoder.encode is what tools and the transaction check write: the same layout by another hand. */
    private static void clientEncode(Manifest to) throws Exception {
        MessageExt message = new MessageExt(3, BORN, address("10.1.2.3", 40123), STORED, address("127.0.0.1", 10911), "ignored");
        message.setTopic("orders");
        message.setBody(BODY);
        message.setFlag(1);
        message.setQueueOffset(11);
        message.setCommitLogOffset(2222);
        properties().forEach((key, value) -> {
            if (!key.equals("名")) {
                org.apache.rocketmq.common.message.MessageAccessor.putProperty(message, key, value);
            }
        });
        byte[] bytes = MessageDecoder.encode(message, false);
        to.add("client/MessageDecoder.encode", "record", bytes, decoded(bytes, BODY));
    }
}
