import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What one broker leaves in its store directory and the next one must go on with.
 *
 *   Handover leave NAMESRV BROKER ROUND   makes a topic and a group, sends, consumes half, sends delayed messages
 *   Handover take  NAMESRV BROKER ROUND   finds all of it, consumes the rest and the delayed messages, and nothing else
 *
 * A topic that is deleted, and made again under its name:
 *
 *   Handover delete NAMESRV BROKER ROUND  makes a topic, sends, waits until that can be read, and deletes the topic
 *   Handover gone   NAMESRV BROKER ROUND  the topic is not there
 *   Handover again  NAMESRV BROKER ROUND  makes the topic, sends anew, and does what `kept` does
 *   Handover kept   NAMESRV BROKER ROUND  finds what was sent anew, and nothing else; with `old` behind it, messages of the
 *                                         deleted topic may be before it: Java's recovery brings them back
 */
public class Handover {
    static final int QUEUES = 4;
    static final int EACH = 50;
    static final int CONSUMED = 23;
    static final int DELAYED = 20;
    /** By the part's delay levels the one that lasts until the other broker is up. */
    static final int LEVEL = 6;

    final String namesrv;
    final String broker;
    final String topic;
    final String group;
    final boolean oldMayComeBack;

    Handover(String[] args) {
        namesrv = args[1];
        broker = args[2];
        topic = "Handover" + args[3];
        group = "handover" + args[3];
        oldMayComeBack = args.length > 4;
    }

    public static void main(String[] args) {
        int status = 1;
        try {
            Handover handover = new Handover(args);
            switch (args[0]) {
                case "leave":
                    handover.leave();
                    break;
                case "take":
                    handover.take();
                    break;
                case "delete":
                    handover.delete();
                    break;
                case "gone":
                    handover.gone();
                    break;
                case "again":
                    handover.again();
                    break;
                case "kept":
                    handover.kept();
                    break;
                default:
                    throw new IllegalArgumentException(args[0]);
            }
            status = 0;
        } catch (Throwable failure) {
            failure.printStackTrace(System.out);
        }
        Runtime.getRuntime().halt(status);
    }

    private void leave() throws Exception {
        DefaultMQAdminExt admin = admin();
        TopicConfig config = new TopicConfig(topic, QUEUES, QUEUES);
        config.getAttributes().put("+message.type", "DELAY");
        admin.createAndUpdateTopicConfig(broker, config);
        SubscriptionGroupConfig subscription = new SubscriptionGroupConfig();
        subscription.setGroupName(group);
        subscription.setRetryMaxTimes(7);
        admin.createAndUpdateSubscriptionGroupConfig(broker, subscription);
        admin.shutdown();

        DefaultMQProducer producer = new DefaultMQProducer("sender" + topic);
        producer.setNamesrvAddr(namesrv);
        producer.start();
        for (MessageQueue queue : routed(producer, topic)) {
            for (int i = 0; i < EACH; i++) {
                producer.send(new Message(topic, name(queue.getQueueId(), i).getBytes()), queue);
            }
        }
        consumeSome();
        for (int i = 0; i < DELAYED; i++) {
            Message message = new Message(topic, ("delayed " + i).getBytes());
            message.setDelayTimeLevel(LEVEL);
            producer.send(message);
        }
        producer.shutdown();
    }

    private void delete() throws Exception {
        DefaultMQAdminExt admin = admin();
        admin.createAndUpdateTopicConfig(broker, new TopicConfig(topic, QUEUES, QUEUES));
        send(topic, "old");
        same("messages", EACH, readable("old").size());
        admin.deleteTopicInBroker(Set.of(broker), topic);
        // Also after a clean stop Java puts into queues what lies behind the last message that is in one.
        String behind = topic + "Behind";
        admin.createAndUpdateTopicConfig(broker, new TopicConfig(behind, QUEUES, QUEUES));
        admin.shutdown();
        send(behind, "behind");
    }

    private void gone() throws Exception {
        DefaultMQAdminExt admin = admin();
        same("topic's configuration", false, admin.getAllTopicConfig(broker, 5000).getTopicConfigTable().containsKey(topic));
        admin.shutdown();
    }

    private void again() throws Exception {
        DefaultMQAdminExt admin = admin();
        admin.createAndUpdateTopicConfig(broker, new TopicConfig(topic, QUEUES, QUEUES));
        admin.shutdown();
        send(topic, "new");
        kept();
    }

    private void kept() throws Exception {
        List<String> wanted = new ArrayList<>();
        for (int i = 0; i < EACH; i++) {
            wanted.add("new " + i);
        }
        List<String> found = readable("new");
        if (oldMayComeBack) {
            found.removeIf(body -> body.startsWith("old "));
        }
        same("messages", wanted, found);
    }

    /** To one queue, so that they have an order. */
    private void send(String to, String word) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("sender" + to);
        producer.setNamesrvAddr(namesrv);
        producer.start();
        MessageQueue queue = routed(producer, to).stream().filter(q -> q.getQueueId() == 0).findFirst().orElseThrow();
        for (int i = 0; i < EACH; i++) {
            producer.send(new Message(to, (word + " " + i).getBytes()), queue);
        }
        producer.shutdown();
    }

    /** All that is in that queue, once the last message that was sent with this word is there. */
    private List<String> readable(String word) throws Exception {
        DefaultMQPullConsumer consumer = puller();
        long end = System.currentTimeMillis() + 30000;
        List<String> bodies = new ArrayList<>();
        while (!bodies.contains(word + " " + (EACH - 1)) && System.currentTimeMillis() < end) {
            bodies.clear();
            long offset = consumer.minOffset(queue(0));
            PullResult pulled = consumer.pull(queue(0), "*", offset, 32);
            while (pulled.getPullStatus() == PullStatus.FOUND) {
                pulled.getMsgFoundList().forEach(message -> bodies.add(new String(message.getBody())));
                pulled = consumer.pull(queue(0), "*", pulled.getNextBeginOffset(), 32);
            }
        }
        consumer.shutdown();
        return bodies;
    }

    /** The route of a new topic comes a moment after it. */
    private List<MessageQueue> routed(DefaultMQProducer producer, String topic) throws Exception {
        long end = System.currentTimeMillis() + 30000;
        while (true) {
            try {
                List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
                same("queues", QUEUES, queues.size());
                return queues;
            } catch (org.apache.rocketmq.client.exception.MQClientException missing) {
                if (System.currentTimeMillis() > end) {
                    throw missing;
                }
                Thread.sleep(100);
            }
        }
    }

    private void consumeSome() throws Exception {
        DefaultMQPullConsumer consumer = puller();
        for (int id = 0; id < QUEUES; id++) {
            MessageQueue queue = queue(id);
            PullResult pulled = consumer.pull(queue, "*", 0, CONSUMED);
            same("pulled", CONSUMED, pulled.getMsgFoundList().size());
            consumer.getOffsetStore().updateConsumeOffsetToBroker(queue, CONSUMED, false);
        }
        consumer.shutdown();
    }

    private void take() throws Exception {
        DefaultMQAdminExt admin = admin();
        TopicConfig config = admin.examineTopicConfig(broker, topic);
        same("queues", QUEUES, config.getWriteQueueNums());
        same("type", "DELAY", config.getAttributes().get("message.type"));
        same("retries", 7, admin.examineSubscriptionGroupConfig(broker, group).getRetryMaxTimes());
        admin.shutdown();
        DefaultMQPullConsumer puller = puller();
        for (int id = 0; id < QUEUES; id++) {
            same("offset", (long) CONSUMED, puller.fetchConsumeOffset(queue(id), true));
        }
        puller.shutdown();

        Map<String, AtomicInteger> got = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                got.computeIfAbsent(new String(message.getBody()), b -> new AtomicInteger()).incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        List<String> wanted = wanted();
        long end = System.currentTimeMillis() + 60000;
        while (!got.keySet().containsAll(wanted) && System.currentTimeMillis() < end) {
            Thread.sleep(50);
        }
        consumer.shutdown();
        List<String> missing = new ArrayList<>(wanted);
        missing.removeAll(got.keySet());
        same("missing", List.of(), missing);
        same("messages", wanted.size(), got.size());
        same("deliveries", wanted.size(), got.values().stream().mapToInt(AtomicInteger::get).sum());
    }

    private static List<String> wanted() {
        List<String> all = new ArrayList<>();
        for (int id = 0; id < QUEUES; id++) {
            for (int i = CONSUMED; i < EACH; i++) {
                all.add(name(id, i));
            }
        }
        for (int i = 0; i < DELAYED; i++) {
            all.add("delayed " + i);
        }
        return all;
    }

    private static String name(int queue, int i) {
        return "message " + i + " of queue " + queue;
    }

    private MessageQueue queue(int id) {
        return new MessageQueue(topic, "broker-a", id);
    }

    private DefaultMQPullConsumer puller() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.start();
        return consumer;
    }

    private DefaultMQAdminExt admin() throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(namesrv);
        admin.start();
        return admin;
    }

    private static void same(String what, Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }
}
