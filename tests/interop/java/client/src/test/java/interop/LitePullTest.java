package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;

class LitePullTest {
    private static void fill(Mq mq, String topic, int count) throws Exception {
        DefaultMQProducer producer = mq.producer();
        for (int i = 0; i < count; i++) {
            Mq.send(producer, Mq.message(topic, i % 2 == 0 ? "even" : "odd", "m" + i));
        }
    }

    private static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count) {
        List<MessageExt> got = new ArrayList<>();
        Mq.await(count + " messages", () -> got.addAll(consumer.poll(200)) && got.size() >= count, got::size);
        return got;
    }

    private static List<String> numbered(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> "m" + i).toList();
    }

    @Test
    void assignedQueuesAreReadFromWhereOneSeeks() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("assign", 1);
            fill(mq, topic, 40);
            DefaultLitePullConsumer consumer = mq.lite(Mq.name("group"));
            consumer.setAutoCommit(false);
            consumer.start();
            MessageQueue queue = consumer.fetchMessageQueues(topic).iterator().next();
            consumer.assign(List.of(queue));
            // Seeking while the client's first pull is under way can lose messages inside the client itself.
            assertEquals(numbered(0, 40), Mq.texts(poll(consumer, 40)));
            consumer.seek(queue, 10);
            assertEquals(numbered(10, 40), Mq.texts(poll(consumer, 30)));
            consumer.seekToBegin(queue);
            assertEquals(numbered(0, 40), Mq.texts(poll(consumer, 40)));
            consumer.seekToEnd(queue);
            fill(mq, topic, 3);
            assertEquals(numbered(0, 3), Mq.texts(poll(consumer, 3)));
        }
    }

    @Test
    void subscribersCommitAndGoOn() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("subscribe", 4);
            String group = Mq.name("group");
            fill(mq, topic, 40);
            DefaultLitePullConsumer first = mq.lite(group);
            first.setAutoCommit(false);
            first.subscribe(topic, "*");
            first.start();
            assertEquals(new HashSet<>(numbered(0, 40)), new HashSet<>(Mq.texts(poll(first, 40))));
            first.commitSync();
            long committed = 0;
            for (MessageQueue queue : first.assignment()) {
                committed += first.committed(queue);
            }
            assertEquals(40, committed);
            Set<MessageQueue> queues = first.assignment();
            first.shutdown();
            // The commit was a oneway request: one who comes at once, by another connection, may be served before it.
            Mq.await("the broker has the offsets", () -> committed(mq, group, queues) == 40);
            fill(mq, topic, 8);
            DefaultLitePullConsumer second = mq.lite(group);
            second.subscribe(topic, "*");
            second.start();
            List<MessageExt> rest = poll(second, 8);
            assertEquals(8, rest.size(), () -> "got " + Mq.texts(rest));
        }
    }

    /** As the broker says: a consumer keeps what it has heard, so each time a new one asks. */
    private static long committed(Mq mq, String group, Set<MessageQueue> queues) {
        DefaultLitePullConsumer asks = mq.lite(group);
        asks.setAutoCommit(false);
        try {
            asks.start();
            long sum = 0;
            for (MessageQueue queue : queues) {
                sum += asks.committed(queue);
            }
            return sum;
        } catch (Exception e) {
            return -1;
        } finally {
            asks.shutdown();
        }
    }

    @Test
    void twoSubscribersShare() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("lshare", 4);
            String group = Mq.name("group");
            DefaultLitePullConsumer one = mq.lite(group);
            one.subscribe(topic, "*");
            one.start();
            Mq.await("all queues", () -> assigned(one) == 4);
            DefaultLitePullConsumer two = mq.lite(group);
            two.subscribe(topic, "*");
            two.start();
            Mq.await("two queues each", () -> assigned(one) == 2 && assigned(two) == 2, () -> assigned(one) + " and " + assigned(two));
            fill(mq, topic, 40);
            Set<String> got = new HashSet<>();
            Mq.await("all messages", () -> {
                got.addAll(Mq.texts(one.poll(50)));
                got.addAll(Mq.texts(two.poll(50)));
                return got.size() == 40;
            }, got::size);
        }
    }

    private static int assigned(DefaultLitePullConsumer consumer) {
        try {
            return consumer.assignment().size();
        } catch (Exception e) {
            return -1;
        }
    }

    @Test
    void tagsAreFilteredForSubscribers() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("ltags", 2);
            DefaultLitePullConsumer consumer = mq.lite(Mq.name("group"));
            consumer.subscribe(topic, "odd || none");
            consumer.start();
            fill(mq, topic, 40);
            List<MessageExt> got = poll(consumer, 20);
            assertEquals(20, got.size());
            assertTrue(got.stream().allMatch(m -> m.getTags().equals("odd")));
        }
    }

    @Test
    void anOffsetIsFoundForATime() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("ltime", 1);
            fill(mq, topic, 10);
            Thread.sleep(60);
            long between = System.currentTimeMillis();
            Thread.sleep(60);
            fill(mq, topic, 10);
            DefaultLitePullConsumer consumer = mq.lite(Mq.name("group"));
            consumer.setAutoCommit(false);
            consumer.start();
            MessageQueue queue = consumer.fetchMessageQueues(topic).iterator().next();
            assertEquals(10, consumer.offsetForTimestamp(queue, between));
            consumer.assign(List.of(queue));
            poll(consumer, 20);
            consumer.seek(queue, consumer.offsetForTimestamp(queue, between));
            assertEquals(numbered(0, 10), Mq.texts(poll(consumer, 10)));
        }
    }
}
