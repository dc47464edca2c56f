package interop;

import static org.junit.jupiter.api.Assertions.fail;

import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What every test needs: clients with names of their own, topics, and waiting for a condition with a deadline. */
final class Mq implements AutoCloseable {
    static final String NAMESRV = System.getenv("NAMESRV_ADDR");
    /** How long a condition may take; a machine that does much else needs more. */
    static final int SECONDS = Integer.parseInt(System.getenv().getOrDefault("INTEROP_SECONDS", "60"));
    private static final AtomicInteger NEXT = new AtomicInteger();
    private static final String RUN = Long.toString(System.currentTimeMillis() % 100_000_000, 36);
    private final List<Runnable> closers = new ArrayList<>();

    Mq() {
        if (NAMESRV == null || NAMESRV.isEmpty()) {
            throw new IllegalStateException("set NAMESRV_ADDR to a name server with one broker");
        }
    }

    /** A name that no other test, client version or run uses. */
    static String name(String what) {
        return "java_" + what + "_" + RUN + "_" + NEXT.incrementAndGet();
    }

    private static <C extends ClientConfig> C configure(C client) {
        client.setNamesrvAddr(NAMESRV);
        client.setInstanceName("i" + NEXT.incrementAndGet());
        return client;
    }

    DefaultMQProducer producer() throws Exception {
        DefaultMQProducer producer = configure(new DefaultMQProducer(name("producer")));
        producer.setSendMsgTimeout(10_000);
        producer.start();
        closers.add(producer::shutdown);
        return producer;
    }

    /** Not started: the test subscribes first. */
    DefaultMQPushConsumer push(String group) {
        DefaultMQPushConsumer consumer = configure(new DefaultMQPushConsumer(group));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        closers.add(consumer::shutdown);
        return consumer;
    }

    DefaultLitePullConsumer lite(String group) {
        DefaultLitePullConsumer consumer = configure(new DefaultLitePullConsumer(group));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullThreadNums(2);
        closers.add(consumer::shutdown);
        return consumer;
    }

    /** MessageModel lives in another package since 5.0. */
    static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
        for (Method method : consumer.getClass().getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                for (Object model : method.getParameterTypes()[0].getEnumConstants()) {
                    if (model.toString().equals("BROADCASTING")) {
                        method.invoke(consumer, model);
                    }
                }
            }
        }
    }

    /** A topic with so many queues, made through the client's createTopic and visible in the route. */
    String topic(String what, int queues) throws Exception {
        String topic = name(what);
        DefaultMQProducer producer = producer();
        createTopic(producer, topic, queues);
        await("the route of " + topic + " has " + queues + " queues", () -> queues(producer, topic).size() == queues);
        return topic;
    }

    /** 4.9 takes three arguments, 5.x also attributes. */
    static void createTopic(DefaultMQProducer producer, String topic, int queues) throws Exception {
        try {
            Method old = DefaultMQProducer.class.getMethod("createTopic", String.class, String.class, int.class);
            old.invoke(producer, "TBW102", topic, queues);
        } catch (NoSuchMethodException e) {
            Method now = DefaultMQProducer.class.getMethod("createTopic", String.class, String.class, int.class, Map.class);
            now.invoke(producer, "TBW102", topic, queues, null);
        }
    }

    static List<MessageQueue> queues(DefaultMQProducer producer, String topic) {
        try {
            List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
            queues.sort(null);
            return queues;
        } catch (Exception e) {
            return List.of();
        }
    }

    static Message message(String topic, String tag, String text) {
        return new Message(topic, tag, text.getBytes(StandardCharsets.UTF_8));
    }

    static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static List<String> texts(Collection<MessageExt> messages) {
        return messages.stream().map(Mq::text).toList();
    }

    static SendResult send(DefaultMQProducer producer, Message message) throws Exception {
        SendResult result = producer.send(message);
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            fail("send answered " + result);
        }
        return result;
    }

    /** Reads a topic from its first message until so many have come (or the deadline), then a moment more for surplus ones. */
    List<MessageExt> readAll(String topic, int expected) throws Exception {
        DefaultLitePullConsumer reader = lite(name("reader"));
        reader.setAutoCommit(false);
        reader.start();
        List<MessageQueue> queues = new ArrayList<>();
        await("queues of " + topic, () -> {
            try {
                queues.clear();
                queues.addAll(reader.fetchMessageQueues(topic));
                return !queues.isEmpty();
            } catch (Exception e) {
                return false;
            }
        });
        reader.assign(queues);
        List<MessageExt> got = new ArrayList<>();
        await(expected + " messages in " + topic, () -> got.addAll(reader.poll(200)) && got.size() >= expected, got::size);
        got.addAll(reader.poll(300));
        return got;
    }

    static void await(String what, BooleanSupplier condition) {
        await(what, condition, () -> "");
    }

    static void await(String what, BooleanSupplier condition, Supplier<Object> seen) {
        long end = System.nanoTime() + SECONDS * 1_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                fail("waited " + SECONDS + " s for: " + what + "; seen: " + seen.get());
            }
            try {
                Thread.sleep(20);
            } catch (InterruptedException e) {
                fail(e);
            }
        }
    }

    @Override
    public void close() {
        for (int i = closers.size() - 1; i >= 0; i--) {
            closers.get(i).run();
        }
    }
}
