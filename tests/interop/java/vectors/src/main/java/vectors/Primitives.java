package vectors;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageId;

/** The small things: message ids, property text, checksums, hash codes. */
final class Primitives {
    private Primitives() {
    }

    static void write(Manifest to) throws Exception {
        messageIds(to);
        uniqueIds(to);
        properties(to);
        for (String text : List.of("", "a", "TagA", "TagB || x", "标签", "\uD83D\uDE80 rocket", "polygenelubricants", "Aa", "BB")) {
            Map<String, Object> expect = new LinkedHashMap<>();
            expect.put("hashCode", text.hashCode());
            expect.put("tagsCode", MessageExtBrokerInner.tagsString2tagsCode(null, text));
            to.add("hash/" + text, "hash", Map.of("text", text), text.getBytes(StandardCharsets.UTF_8), expect);
        }
        for (String text : List.of("", "a", "123456789", "Hello 消息", "x".repeat(1000))) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            to.add("crc32/" + text.length() + "-" + Integer.toHexString(text.hashCode()), "crc32", bytes, Map.of("crc32", UtilAll.crc32(bytes)));
        }
    }

    private static void messageIds(Manifest to) throws Exception {
        Object[][] cases = {{"127.0.0.1", 10911, 0L}, {"192.168.250.1", 65535, 1_099_511_627_776L}, {"10.0.0.1", 1, Long.MAX_VALUE},
            {"::1", 10911, 42L}, {"2001:db8::ff", 10909, 1_234_567_890_123L}};
        for (Object[] one : cases) {
            String id = MessageDecoder.createMessageId(Records.address((String) one[0], (int) one[1]), (long) one[2]);
            MessageId back = MessageDecoder.decodeMessageId(id);
            Map<String, Object> expect = new LinkedHashMap<>();
            expect.put("text", id);
            expect.put("host", Records.host(back.getAddress()));
            expect.put("offset", back.getOffset());
            to.add("message-id/" + id, "message_id", id.getBytes(StandardCharsets.UTF_8), expect);
        }
    }

    /** Client-made ids cannot be asked for by time, so these are given texts; only their parts are Java's word. */
    private static void uniqueIds(Manifest to) {
        for (String id : List.of("7F0000011C0C18B4AAC21A8C9A5E0000", "C0A8FA01123418B4AAC2000000010203")) {
            Map<String, Object> expect = new LinkedHashMap<>();
            expect.put("ip", MessageClientIDSetter.getIPStrFromID(id));
            expect.put("pid", MessageClientIDSetter.getPidFromID(id));
            to.add("unique-id/" + id, "unique_id", id.getBytes(StandardCharsets.UTF_8), expect);
        }
    }

    private static void properties(Manifest to) {
        Map<String, String> usual = new LinkedHashMap<>();
        usual.put("TAGS", "TagA");
        usual.put("KEYS", "a b");
        usual.put("empty", "");
        usual.put("名", "值");
        List<Object[]> cases = new ArrayList<>();
        cases.add(new Object[] {"usual", MessageDecoder.messageProperties2String(usual)});
        cases.add(new Object[] {"empty", ""});
        cases.add(new Object[] {"no-last-separator", "a\u0001b\u0002c\u0001d"});
        cases.add(new Object[] {"value-with-separator-1", "a\u0001b\u0001c\u0002d\u0001e\u0002"});
        cases.add(new Object[] {"no-value", "a\u0002b\u0001c\u0002"});
        cases.add(new Object[] {"twice", "a\u00011\u0002a\u00012\u0002"});
        cases.add(new Object[] {"empty-key", "\u0001v\u0002k\u0001v\u0002"});
        cases.add(new Object[] {"doubled-separators", "\u0002\u0002k\u0001v\u0002\u0002"});
        for (Object[] one : cases) {
            String text = (String) one[1];
            to.add("properties/" + one[0], "properties", text.getBytes(StandardCharsets.UTF_8),
                new LinkedHashMap<>(new java.util.TreeMap<>(MessageDecoder.string2messageProperties(text))));
        }
    }
}
