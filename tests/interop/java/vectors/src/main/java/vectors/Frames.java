package vectors;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.action.RocketMQAction;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.annotation.CFNotNull;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeaderV2;
import org.apache.rocketmq.remoting.protocol.header.SendMessageResponseHeader;

/** Whole frames, length word included, in both serialisations: each header class of the remoting jar, then special shapes. */
final class Frames {
    private Frames() {
    }

    static void write(Manifest to) throws Exception {
        int opaque = 1;
        for (Class<?> type : Classes.in(CommandCustomHeader.class, "org.apache.rocketmq.remoting.protocol.header",
            t -> CommandCustomHeader.class.isAssignableFrom(t))) {
            CommandCustomHeader full = (CommandCustomHeader) header(type, false);
            for (SerializeType serialize : SerializeType.values()) {
                add(to, type.getSimpleName() + "/full/" + serialize, command(type, full, opaque++, serialize), full);
            }
            CommandCustomHeader bare = (CommandCustomHeader) header(type, true);
            add(to, type.getSimpleName() + "/required/JSON", command(type, bare, opaque++, SerializeType.JSON), bare);
        }
        special(to);
    }

    /** A header with all fields, or only with those that Java insists on. */
    private static Object header(Class<?> type, boolean requiredOnly) throws ReflectiveOperationException {
        Object header = Filler.fill(type);
        for (Field field : Filler.fields(type)) {
            field.setAccessible(true);
            if (field.getName().equals("properties") || type == SendMessageRequestHeaderV2.class && field.getName().equals("i")) {
                field.set(header, "KEYS\u0001k1 k2\u0002TAGS\u0001TagA\u0002名\u0001值\u0002");
            }
            if (requiredOnly && !field.getType().isPrimitive() && field.getAnnotation(CFNotNull.class) == null) {
                field.set(header, null);
            }
        }
        return header;
    }

    private static RemotingCommand command(Class<?> type, CommandCustomHeader header, int opaque, SerializeType serialize) {
        RocketMQAction action = type.getAnnotation(RocketMQAction.class);
        boolean response = type.getSimpleName().contains("Response");
        RemotingCommand command = response
            ? RemotingCommand.createResponseCommandWithHeader(ResponseCode.SUCCESS, header)
            : RemotingCommand.createRequestCommand(action == null ? 9999 : action.value(), header);
        command.setOpaque(opaque);
        command.setVersion(MQVersion.CURRENT_VERSION);
        command.setSerializeTypeCurrentRPC(serialize);
        return command;
    }

    private static void special(Manifest to) {
        for (SerializeType serialize : SerializeType.values()) {
            RemotingCommand plain = RemotingCommand.createRequestCommand(RequestCode.GET_BROKER_CLUSTER_INFO, null);
            add(to, "request-without-header/" + serialize, fix(plain, 7, serialize), null);

            RemotingCommand oneway = RemotingCommand.createRequestCommand(RequestCode.SEND_MESSAGE_V2, null);
            oneway.markOnewayRPC();
            oneway.addExtField("zeta", "");
            oneway.addExtField("unknown field", "a \"quoted\" \\ back\nline\ttab /slash");
            oneway.setBody("body bytes \u0000 end".getBytes(StandardCharsets.UTF_8));
            add(to, "oneway-odd-fields-body/" + serialize, fix(oneway, Integer.MAX_VALUE, serialize), null);

            RemotingCommand error = RemotingCommand.createResponseCommand(ResponseCode.TOPIC_NOT_EXIST,
                "No topic route info in name server for the topic: 主题\nSee the \"FAQ\"");
            add(to, "response-remark/" + serialize, fix(error, -1, serialize), null);

            SendMessageResponseHeader sent = new SendMessageResponseHeader();
            sent.setMsgId("7F00000100002A9F0000000000000000");
            sent.setQueueId(0);
            sent.setQueueOffset(0L);
            RemotingCommand reply = RemotingCommand.createResponseCommandWithHeader(ResponseCode.SUCCESS, sent);
            reply.addExtField("MSG_REGION", "DefaultRegion");
            reply.addExtField("TRACE_ON", "true");
            reply.setBody(new byte[0]);
            add(to, "send-reply-empty-body/" + serialize, fix(reply, 0, serialize), sent);

            SendMessageRequestHeaderV2 send = new SendMessageRequestHeaderV2();
            send.setA("group");
            send.setB("topic");
            send.setC("TBW102");
            send.setD(4);
            send.setE(3);
            send.setF(0);
            send.setG(1700000000000L);
            send.setH(0);
            send.setI("KEYS\u0001k\u0002UNIQ_KEY\u00017F0000011C0C18B4AAC21A8C9A5E0000\u0002WAIT\u0001true\u0002TAGS\u0001TagA\u0002");
            send.setJ(0);
            send.setK(false);
            send.setM(false);
            send.setBrokerName("broker-a");
            RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.SEND_MESSAGE_V2, send);
            request.setBody("hello".getBytes(StandardCharsets.UTF_8));
            add(to, "send-as-the-client-does/" + serialize, fix(request, 12, serialize), send);

            PullMessageRequestHeader pull = new PullMessageRequestHeader();
            pull.setConsumerGroup("group");
            pull.setTopic("topic");
            pull.setQueueId(1);
            pull.setQueueOffset(42L);
            pull.setMaxMsgNums(32);
            pull.setSysFlag(6);
            pull.setCommitOffset(0L);
            pull.setSuspendTimeoutMillis(15000L);
            pull.setSubscription("TagA || TagB");
            pull.setSubVersion(1700000000000L);
            pull.setExpressionType("TAG");
            pull.setMaxMsgBytes(Integer.MAX_VALUE);
            pull.setRequestSource(0);
            pull.setBrokerName("broker-a");
            add(to, "pull-as-the-client-does/" + serialize,
                fix(RemotingCommand.createRequestCommand(RequestCode.PULL_MESSAGE, pull), 13, serialize), pull);

            for (LanguageCode language : LanguageCode.values()) {
                RemotingCommand spoken = RemotingCommand.createRequestCommand(RequestCode.HEART_BEAT, null);
                spoken.setLanguage(language);
                add(to, "language-" + language + "/" + serialize, fix(spoken, 100 + language.getCode(), serialize), null);
            }
        }
    }

    private static RemotingCommand fix(RemotingCommand command, int opaque, SerializeType serialize) {
        command.setOpaque(opaque);
        command.setVersion(MQVersion.CURRENT_VERSION);
        command.setSerializeTypeCurrentRPC(serialize);
        return command;
    }

    private static void add(Manifest to, String name, RemotingCommand command, CommandCustomHeader header) {
        ByteBuf out = Unpooled.buffer();
        command.fastEncodeHeader(out);
        if (command.getBody() != null) {
            out.writeBytes(command.getBody());
        }
        byte[] bytes = new byte[out.readableBytes()];
        out.readBytes(bytes);

        Map<String, Object> expect = new LinkedHashMap<>();
        expect.put("serialize", command.getSerializeTypeCurrentRPC().name());
        // The binary header has 16 bits for the code: those of 200000 and more arrive cut.
        boolean binary = command.getSerializeTypeCurrentRPC() == SerializeType.ROCKETMQ;
        expect.put("code", binary ? (short) command.getCode() : command.getCode());
        expect.put("language", command.getLanguage().name());
        expect.put("version", command.getVersion());
        expect.put("opaque", command.getOpaque());
        expect.put("flag", command.getFlag());
        expect.put("remark", command.getRemark());
        expect.put("extFields", wireFields(bytes));
        expect.put("body", java.util.HexFormat.of().formatHex(command.getBody() == null ? new byte[0] : command.getBody()));
        if (header != null) {
            expect.put("headerClass", header.getClass().getSimpleName());
            expect.put("header", headerValues(header));
        }
        to.add(name, "frame", bytes, expect);
    }

    /** The header's own members with their types: numbers as numbers, booleans as booleans; members that are null are left out. */
    private static Map<String, Object> headerValues(CommandCustomHeader header) {
        Map<String, Object> values = new TreeMap<>();
        for (Field field : Filler.fields(header.getClass())) {
            field.setAccessible(true);
            try {
                Object value = field.get(header);
                if (value != null) {
                    values.putIfAbsent(field.getName(), value);
                }
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
        }
        return values;
    }

    /** The extension fields in the order in which the bytes have them: writing them again in this order gives the same bytes. */
    private static Object wireFields(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        in.getInt();
        int mark = in.getInt();
        byte[] header = new byte[mark & 0xffffff];
        in.get(header);
        if (mark >>> 24 == 0) {
            Object fields = ((Map<?, ?>) Json.lenient(new String(header, StandardCharsets.UTF_8))).get("extFields");
            return fields;
        }
        ByteBuffer binary = ByteBuffer.wrap(header);
        binary.position(2 + 1 + 2 + 4 + 4);
        binary.position(binary.position() + 4 + binary.getInt(binary.position()));
        binary.getInt();
        Map<String, String> fields = new LinkedHashMap<>();
        while (binary.hasRemaining()) {
            String key = text(binary, binary.getShort());
            fields.put(key, text(binary, binary.getInt()));
        }
        return fields.isEmpty() ? null : fields;
    }

    private static String text(ByteBuffer in, int length) {
        byte[] bytes = new byte[length];
        in.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
