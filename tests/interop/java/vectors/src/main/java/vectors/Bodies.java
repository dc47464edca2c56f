package vectors;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.DataVersion;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.admin.ConsumeStats;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.admin.TopicStatsTable;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.body.Connection;
import org.apache.rocketmq.remoting.protocol.body.ConsumerConnection;
import org.apache.rocketmq.remoting.protocol.body.KVTable;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.LockBatchResponseBody;
import org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigAndMappingSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.TopicList;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.ProducerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** JSON bodies by the two writers (and the pretty one of configuration files), and the packed registration body. */
final class Bodies {
    /** What the name server writes with where a client asks for standard JSON. */
    private static final JSONWriter.Feature[] STANDARD = {JSONWriter.Feature.BrowserCompatible, JSONWriter.Feature.MapSortField};
    private static final long TIME = 1700000000123L;

    private Bodies() {
    }

    static void write(Manifest to) throws Exception {
        for (Class<?> type : Classes.in(RemotingSerializable.class, "org.apache.rocketmq.remoting.protocol", Bodies::isBody)) {
            Object body = null;
            try {
                body = Filler.fill(type);
            } catch (ReflectiveOperationException | RuntimeException e) {
                System.err.println("left out " + type.getSimpleName() + ": " + e);
            }
            if (body != null) {
                add(to, "filled/" + type.getSimpleName(), body);
            }
            if (hasDefaultConstructor(type)) {
                Object empty = type.getDeclaredConstructor().newInstance();
                stopClocks(empty);
                add(to, "empty/" + type.getSimpleName(), empty);
            }
        }
        realistic(to);
    }

    /** Some objects take the time when they are made; the files should be the same in every run. */
    private static void stopClocks(Object made) throws ReflectiveOperationException {
        if (made instanceof DataVersion version) {
            version.setTimestamp(TIME);
        } else if (made instanceof SubscriptionData subscription) {
            subscription.setSubVersion(TIME);
        }
        for (Field field : Filler.fields(made.getClass())) {
            boolean ours = field.getType().getName().startsWith("org.apache.rocketmq") && !field.getType().isEnum();
            field.setAccessible(true);
            if (ours && field.get(made) != null && field.get(made) != made) {
                stopClocks(field.get(made));
            }
        }
    }

    private static boolean isBody(Class<?> type) {
        String where = type.getPackageName().substring("org.apache.rocketmq.remoting.protocol".length());
        boolean folder = Set.of(".body", ".route", ".heartbeat", ".admin", ".subscription", ".statictopic", ".topic").contains(where);
        return (folder || type == DataVersion.class) && !type.getSimpleName().matches(".*(Utils|Context|Allocator|RoleChangeNotifyEntry|RollbackStats)");
    }

    private static boolean hasDefaultConstructor(Class<?> type) {
        try {
            return type.getConstructor() != null;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    private static void realistic(Manifest to) throws Exception {
        add(to, "HeartbeatData", heartbeat());
        add(to, "TopicRouteData", route());
        add(to, "ClusterInfo", cluster());
        add(to, "TopicConfig", topicConfig("orders", 8));
        add(to, "TopicConfigSerializeWrapper", topics(new TopicConfigSerializeWrapper()));
        add(to, "SubscriptionGroupConfig/defaults", new SubscriptionGroupConfig());
        add(to, "KVTable", kvTable());
        add(to, "TopicStatsTable", topicStats());
        add(to, "ConsumeStats", consumeStats());
        add(to, "ConsumerConnection", consumerConnection());
        add(to, "LockBatchRequestBody", lockRequest());
        add(to, "LockBatchResponseBody", lockResponse());
        TopicList list = new TopicList();
        list.setTopicList(new HashSet<>(List.of("a", "b", "%RETRY%g", "订单")));
        list.setBrokerAddr("127.0.0.1:10911");
        add(to, "TopicList", list);
        configFiles(to);
        registration(to);
        topicConfigText(to);
    }

    /** Three vectors of one object: Java's usual writer, its standard one, and the pretty one. */
    private static void add(Manifest to, String name, Object body) {
        String legacy = RemotingSerializable.toJson(body, false);
        Object expect = Json.lenient(legacy);
        String type = body.getClass().getSimpleName();
        byte[] standard = JSON.toJSONString(body, STANDARD).getBytes(StandardCharsets.UTF_8);
        to.add(name + "/legacy", "body", Map.of("class", type, "writer", "legacy"), legacy.getBytes(StandardCharsets.UTF_8), expect);
        if (!java.util.Arrays.equals(standard, legacy.getBytes(StandardCharsets.UTF_8))) {
            to.add(name + "/standard", "body", Map.of("class", type, "writer", "standard"), standard, expect);
        }
        if (!name.startsWith("empty/") && !name.startsWith("filled/")) {
            pretty(to, name, body);
        }
    }

    private static void pretty(Manifest to, String name, Object body) {
        String text = RemotingSerializable.toJson(body, true);
        to.add(name + "/pretty", "body", Map.of("class", body.getClass().getSimpleName(), "writer", "pretty"),
            text.getBytes(StandardCharsets.UTF_8), Json.lenient(text));
    }

    private static HeartbeatData heartbeat() {
        HeartbeatData beat = new HeartbeatData();
        beat.setClientID("192.168.0.7@4711#1234567890");
        ProducerData producer = new ProducerData();
        producer.setGroupName("producers");
        beat.getProducerDataSet().add(producer);
        ConsumerData consumer = new ConsumerData();
        consumer.setGroupName("consumers");
        consumer.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        consumer.setMessageModel(MessageModel.CLUSTERING);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        SubscriptionData subscription = new SubscriptionData("orders", "TagA || TagB");
        subscription.setSubVersion(TIME);
        subscription.setTagsSet(new HashSet<>(List.of("TagA", "TagB")));
        subscription.setCodeSet(new HashSet<>(List.of("TagA".hashCode(), "TagB".hashCode())));
        consumer.getSubscriptionDataSet().add(subscription);
        consumer.setUnitMode(false);
        beat.getConsumerDataSet().add(consumer);
        beat.setHeartbeatFingerprint(-123456);
        return beat;
    }

    private static TopicRouteData route() {
        TopicRouteData route = new TopicRouteData();
        route.setOrderTopicConf("broker-a:8;broker-b:8");
        List<QueueData> queues = new ArrayList<>();
        List<BrokerData> brokers = new ArrayList<>();
        for (String name : List.of("broker-a", "broker-b")) {
            QueueData queue = new QueueData();
            queue.setBrokerName(name);
            queue.setReadQueueNums(8);
            queue.setWriteQueueNums(8);
            queue.setPerm(6);
            queue.setTopicSysFlag(0);
            queues.add(queue);
            HashMap<Long, String> addresses = new HashMap<>();
            addresses.put(0L, "10.0.0.1:10911");
            addresses.put(1L, "10.0.0.2:10911");
            addresses.put(12L, "10.0.0.3:10911");
            brokers.add(new BrokerData("DefaultCluster", name, addresses));
        }
        route.setQueueDatas(queues);
        route.setBrokerDatas(brokers);
        HashMap<String, List<String>> filters = new HashMap<>();
        filters.put("10.0.0.1:10911", List.of());
        route.setFilterServerTable(filters);
        return route;
    }

    private static ClusterInfo cluster() {
        ClusterInfo info = new ClusterInfo();
        Map<String, BrokerData> brokers = new HashMap<>();
        Map<String, Set<String>> clusters = new HashMap<>();
        HashMap<Long, String> addresses = new HashMap<>();
        addresses.put(0L, "127.0.0.1:10911");
        addresses.put(2L, "127.0.0.1:10921");
        brokers.put("broker-a", new BrokerData("DefaultCluster", "broker-a", addresses));
        clusters.put("DefaultCluster", new HashSet<>(List.of("broker-a")));
        info.setBrokerAddrTable(brokers);
        info.setClusterAddrTable(clusters);
        return info;
    }

    private static TopicConfig topicConfig(String name, int queues) {
        TopicConfig config = new TopicConfig(name);
        config.setReadQueueNums(queues);
        config.setWriteQueueNums(queues);
        config.setPerm(6);
        config.setTopicFilterType(TopicFilterType.SINGLE_TAG);
        config.setTopicSysFlag(1);
        config.setOrder(true);
        config.setTopicMessageType(TopicMessageType.FIFO);
        return config;
    }

    private static <T extends TopicConfigSerializeWrapper> T topics(T wrapper) {
        ConcurrentMap<String, TopicConfig> table = new ConcurrentHashMap<>();
        for (String name : List.of("orders", "TBW102", "%RETRY%consumers", "主题")) {
            table.put(name, topicConfig(name, name.length()));
        }
        TopicConfig plain = new TopicConfig("plain");
        table.put("plain", plain);
        wrapper.setTopicConfigTable(table);
        wrapper.setDataVersion(version());
        return wrapper;
    }

    private static DataVersion version() {
        DataVersion version = new DataVersion();
        version.setTimestamp(TIME);
        version.setStateVersion(2);
        version.getCounter().set(17);
        return version;
    }

    private static KVTable kvTable() {
        KVTable table = new KVTable();
        HashMap<String, String> map = new HashMap<>();
        map.put("brokerVersionDesc", "V5_4_0");
        map.put("putTps", "1.5 0.3 0.0");
        map.put("commitLogDirCapacity", "Total : 251.0 GiB, Free : 79.9 GiB.");
        table.setTable(map);
        return table;
    }

    private static TopicStatsTable topicStats() {
        TopicStatsTable stats = new TopicStatsTable();
        for (int queue = 0; queue < 2; queue++) {
            TopicOffset offset = new TopicOffset();
            offset.setMinOffset(queue);
            offset.setMaxOffset(100 + queue);
            offset.setLastUpdateTimestamp(TIME + queue);
            stats.getOffsetTable().put(new MessageQueue("orders", "broker-a", queue), offset);
        }
        return stats;
    }

    private static ConsumeStats consumeStats() {
        ConsumeStats stats = new ConsumeStats();
        OffsetWrapper offset = new OffsetWrapper();
        offset.setBrokerOffset(100);
        offset.setConsumerOffset(98);
        offset.setPullOffset(99);
        offset.setLastTimestamp(TIME);
        stats.getOffsetTable().put(new MessageQueue("orders", "broker-a", 3), offset);
        stats.setConsumeTps(12.75);
        return stats;
    }

    private static ConsumerConnection consumerConnection() {
        ConsumerConnection connections = new ConsumerConnection();
        Connection connection = new Connection();
        connection.setClientId("10.0.0.9@1@2");
        connection.setClientAddr("10.0.0.9:40000");
        connection.setLanguage(LanguageCode.GO);
        connection.setVersion(MQVersion.CURRENT_VERSION);
        connections.setConnectionSet(new HashSet<>(List.of(connection)));
        ConcurrentHashMap<String, SubscriptionData> table = new ConcurrentHashMap<>();
        SubscriptionData subscription = new SubscriptionData("orders", "*");
        subscription.setSubVersion(TIME);
        table.put("orders", subscription);
        connections.setSubscriptionTable(table);
        connections.setConsumeType(ConsumeType.CONSUME_ACTIVELY);
        connections.setMessageModel(MessageModel.BROADCASTING);
        connections.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        return connections;
    }

    private static LockBatchRequestBody lockRequest() {
        LockBatchRequestBody body = new LockBatchRequestBody();
        body.setConsumerGroup("consumers");
        body.setClientId("10.0.0.9@1@2");
        body.setMqSet(new HashSet<>(List.of(new MessageQueue("orders", "broker-a", 0), new MessageQueue("orders", "broker-a", 1))));
        return body;
    }

    private static LockBatchResponseBody lockResponse() {
        LockBatchResponseBody body = new LockBatchResponseBody();
        body.setLockOKMQSet(new HashSet<>(List.of(new MessageQueue("orders", "broker-a", 1))));
        return body;
    }

    /** What the broker keeps under store/config: written pretty by the managers themselves. */
    private static void configFiles(Manifest to) throws Exception {
        ConsumerOffsetManager offsets = new ConsumerOffsetManager(null);
        ConcurrentMap<Integer, Long> queues = new ConcurrentHashMap<>(Map.of(0, 100L, 1, 0L, 10, 77L));
        offsets.getOffsetTable().put("orders@consumers", queues);
        offsets.getOffsetTable().put("%RETRY%consumers@consumers", new ConcurrentHashMap<>(Map.of(0, 1L)));
        DataVersion own = offsets.getDataVersion();
        own.assignNewOne(version());
        String text = offsets.encode(true);
        to.add("file/consumerOffset.json", "body", Map.of("class", "ConsumerOffsetManager", "writer", "pretty"),
            text.getBytes(StandardCharsets.UTF_8), Json.lenient(text));
        String flat = offsets.encode(false);
        to.add("ConsumerOffsetManager/legacy", "body", Map.of("class", "ConsumerOffsetManager", "writer", "legacy"),
            flat.getBytes(StandardCharsets.UTF_8), Json.lenient(flat));

        SubscriptionGroupManager groups = new SubscriptionGroupManager();
        groups.getDataVersion().assignNewOne(version());
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName("consumers");
        config.setRetryMaxTimes(3);
        groups.getSubscriptionGroupTable().put("consumers", config);
        String grouped = groups.encode(true);
        to.add("file/subscriptionGroup.json", "body", Map.of("class", "SubscriptionGroupManager", "writer", "pretty"),
            grouped.getBytes(StandardCharsets.UTF_8), Json.lenient(grouped));
    }

    /** The registration body: plain JSON, and packed (zlib over counted JSON pieces). */
    private static void registration(Manifest to) {
        RegisterBrokerBody body = new RegisterBrokerBody();
        body.setTopicConfigSerializeWrapper(topics(new TopicConfigAndMappingSerializeWrapper()));
        body.setFilterServerList(new ArrayList<>(List.of("127.0.0.1:30000")));
        body.getTopicConfigSerializeWrapper().getMappingDataVersion().setTimestamp(TIME);
        Object expect = Json.lenient(RemotingSerializable.toJson(body, false));
        to.add("RegisterBrokerBody/plain", "body", Map.of("class", "RegisterBrokerBody", "writer", "legacy"), body.encode(false), expect);
        to.add("RegisterBrokerBody/compressed", "register_broker_compressed",
            Map.of("class", "RegisterBrokerBody", "inflatedHex", inflated(body.encode(true))), body.encode(true), expect);
    }

    private static String inflated(byte[] packed) {
        try (var in = new java.util.zip.InflaterInputStream(new java.io.ByteArrayInputStream(packed))) {
            return java.util.HexFormat.of().formatHex(in.readAllBytes());
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    /** TopicConfig's blank-separated text, the unit inside the packed registration body. */
    private static void topicConfigText(Manifest to) {
        Map<String, TopicConfig> cases = new LinkedHashMap<>();
        cases.put("with-attributes", topicConfig("orders", 8));
        cases.put("defaults", new TopicConfig("plain"));
        cases.forEach((name, config) -> to.add("TopicConfig.encode/" + name, "topic_config_text",
            config.encode().getBytes(StandardCharsets.UTF_8), asMap(config)));
    }

    private static Map<String, Object> asMap(TopicConfig config) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("topicName", config.getTopicName());
        map.put("readQueueNums", config.getReadQueueNums());
        map.put("writeQueueNums", config.getWriteQueueNums());
        map.put("perm", config.getPerm());
        map.put("topicFilterType", config.getTopicFilterType().name());
        map.put("attributes", config.getAttributes());
        return map;
    }
}
