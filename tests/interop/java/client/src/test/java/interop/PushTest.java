package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;

class PushTest {
    private static DefaultMQPushConsumer start(Mq mq, String group, String topic, String tags, Sink sink) throws Exception {
        DefaultMQPushConsumer consumer = mq.push(group);
        consumer.subscribe(topic, tags);
        consumer.registerMessageListener(sink);
        consumer.start();
        return consumer;
    }

    private static Set<String> sendNumbered(Mq mq, String topic, String prefix, int count) throws Exception {
        DefaultMQProducer producer = mq.producer();
        Set<String> sent = new HashSet<>();
        for (int i = 0; i < count; i++) {
            Mq.send(producer, Mq.message(topic, "T", prefix + i));
            sent.add(prefix + i);
        }
        return sent;
    }

    private static Set<Integer> queues(Sink sink) {
        return sink.got.stream().map(MessageExt::getQueueId).collect(Collectors.toSet());
    }

    @Test
    void aGroupSharesTheQueues() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("share", 4);
            String group = Mq.name("group");
            Sink one = new Sink();
            Sink two = new Sink();
            DefaultMQPushConsumer first = start(mq, group, topic, "*", one);
            Mq.await("all queues", () -> owned(first, topic) == 4);
            DefaultMQPushConsumer second = start(mq, group, topic, "*", two);
            Mq.await("two queues each", () -> owned(first, topic) == 2 && owned(second, topic) == 2,
                () -> owned(first, topic) + " and " + owned(second, topic));
            Set<String> sent = sendNumbered(mq, topic, "m", 100);
            Mq.await("all messages", () -> one.got.size() + two.got.size() >= 100, () -> one.got.size() + " + " + two.got.size());
            Set<String> got = new HashSet<>(one.texts());
            got.addAll(two.texts());
            assertEquals(sent, got);
            assertEquals(100, one.got.size() + two.got.size(), "none twice");
            assertEquals(50, one.got.size());
            Set<Integer> both = new HashSet<>(queues(one));
            both.retainAll(queues(two));
            assertEquals(Set.of(), both, "no queue belongs to both");
        }
    }

    /** How many of the topic's queues the consumer has been given. */
    static int owned(DefaultMQPushConsumer consumer, String topic) {
        return (int) consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(topic)).count();
    }

    @Test
    void aKilledConsumersQueuesGoToTheOthers() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("kill", 4);
            String group = Mq.name("group");
            Sink here = new Sink();
            DefaultMQPushConsumer consumer = start(mq, group, topic, "*", here);
            Mq.await("all queues", () -> owned(consumer, topic) == 4);
            Process other = KilledConsumer.start(group, topic);
            try {
                Mq.await("the other process owns two queues", () -> owned(consumer, topic) == 2, () -> owned(consumer, topic));
                sendNumbered(mq, topic, "before", 40);
                Mq.await("this one's half", () -> here.got.size() == 20, here.got::size);
            } finally {
                other.destroyForcibly().waitFor();
            }
            Mq.await("the queues of the dead one", () -> owned(consumer, topic) == 4, () -> owned(consumer, topic));
            Set<String> sent = sendNumbered(mq, topic, "after", 40);
            Mq.await("all messages", () -> here.texts().containsAll(sent), here::texts);
        }
    }

    @Test
    void broadcastingGivesEverythingToEach() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("broadcast", 4);
            String group = Mq.name("group");
            List<Sink> sinks = List.of(new Sink(), new Sink());
            for (Sink sink : sinks) {
                DefaultMQPushConsumer consumer = mq.push(group);
                Mq.broadcast(consumer);
                consumer.subscribe(topic, "*");
                consumer.registerMessageListener(sink);
                consumer.start();
            }
            Set<String> sent = sendNumbered(mq, topic, "m", 40);
            for (Sink sink : sinks) {
                Mq.await("all messages", () -> sink.got.size() >= 40, sink.got::size);
                assertEquals(sent, new HashSet<>(sink.texts()));
                assertEquals(40, sink.got.size());
            }
        }
    }

    @Test
    void orderlyConsumersKeepEachQueuesOrderThroughFailures() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("orderly", 4);
            Map<Integer, List<String>> seen = new ConcurrentHashMap<>();
            Set<Integer> busy = ConcurrentHashMap.newKeySet();
            AtomicInteger overlaps = new AtomicInteger();
            Set<String> failedOnce = ConcurrentHashMap.newKeySet();
            AtomicInteger done = new AtomicInteger();
            String group = Mq.name("group");
            List<DefaultMQPushConsumer> consumers = List.of(mq.push(group), mq.push(group));
            for (DefaultMQPushConsumer consumer : consumers) {
                consumer.subscribe(topic, "*");
                consumer.setSuspendCurrentQueueTimeMillis(100);
                consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                    MessageExt message = messages.get(0);
                    String text = Mq.text(message);
                    if (!busy.add(message.getQueueId())) {
                        overlaps.incrementAndGet();
                    }
                    try {
                        if (text.endsWith(":7") && failedOnce.add(text)) {
                            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                        }
                        seen.computeIfAbsent(message.getQueueId(), q -> new ArrayList<>()).add(text);
                        done.incrementAndGet();
                        return ConsumeOrderlyStatus.SUCCESS;
                    } finally {
                        busy.remove(message.getQueueId());
                    }
                });
                consumer.start();
                Mq.await("all queues, or the second half", () -> owned(consumer, topic) == (consumer == consumers.get(0) ? 4 : 2));
            }
            // With messages already there, the first consumer may hold a queue's lock for 20 s after it lost the queue.
            Mq.await("two locked queues each", () -> consumers.stream().allMatch(c -> owned(c, topic) == 2),
                () -> consumers.stream().map(c -> owned(c, topic)).toList());
            DefaultMQProducer producer = mq.producer();
            for (int i = 0; i < 80; i++) {
                producer.send(Mq.message(topic, "T", i % 4 + ":" + i / 4), (queues, message, shard) -> queues.get((Integer) shard), i % 4);
            }
            Mq.await("80 messages", () -> seen.values().stream().mapToInt(l -> (int) l.stream().distinct().count()).sum() == 80, () -> done.get());
            assertEquals(4, failedOnce.size());
            assertEquals(0, overlaps.get(), "two threads were in one queue");
            seen.forEach((queue, texts) ->
                assertEquals(IntStream.range(0, 20).mapToObj(i -> queue + ":" + i).toList(), texts.stream().distinct().toList()));
        }
    }

    @Test
    void tagsAreFiltered() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("tags", 2);
            Sink some = new Sink();
            Sink one = new Sink();
            Sink all = new Sink();
            start(mq, Mq.name("group"), topic, "TagA || TagB", some);
            start(mq, Mq.name("group"), topic, "标签", one);
            start(mq, Mq.name("group"), topic, "*", all);
            DefaultMQProducer producer = mq.producer();
            for (int i = 0; i < 40; i++) {
                Mq.send(producer, Mq.message(topic, List.of("TagA", "TagB", "TagC", "标签").get(i % 4), "m" + i));
            }
            Mq.await("everything", () -> all.got.size() == 40, all.got::size);
            Mq.await("A and B", () -> some.got.size() == 20, some.got::size);
            Mq.await("the third", () -> one.got.size() == 10, one.got::size);
            assertEquals(Set.of("TagA", "TagB"), some.got.stream().map(MessageExt::getTags).collect(Collectors.toSet()));
            assertEquals(Set.of("标签"), one.got.stream().map(MessageExt::getTags).collect(Collectors.toSet()));
        }
    }

    /** The servers are started with levels 3, 4, 5 = 1 s, 2 s, 3 s: what the first, second and third retry wait. */
    @Test
    void failuresAreRetriedEverLaterAndEndInTheDeadLetterTopic() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("retry", 1);
            String group = Mq.name("group");
            ConcurrentLinkedQueue<Long> times = new ConcurrentLinkedQueue<>();
            ConcurrentLinkedQueue<Integer> counts = new ConcurrentLinkedQueue<>();
            Set<String> topics = ConcurrentHashMap.newKeySet();
            DefaultMQPushConsumer consumer = mq.push(group);
            consumer.setMaxReconsumeTimes(3);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                times.add(System.currentTimeMillis());
                counts.add(messages.get(0).getReconsumeTimes());
                topics.add(messages.get(0).getTopic());
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
            consumer.start();
            ownRetryQueue(consumer, group);
            DefaultMQProducer producer = mq.producer();
            String id = Mq.send(producer, new org.apache.rocketmq.common.message.Message(topic, "T", "k", "poison".getBytes())).getMsgId();
            Mq.await("four tries", () -> counts.size() == 4, () -> counts + " at " + times);
            assertEquals(List.of(0, 1, 2, 3), List.copyOf(counts));
            assertEquals(Set.of(topic), topics, "the listener sees the topic of the message");
            List<Long> at = List.copyOf(times);
            for (int i = 1; i <= 3; i++) {
                long waited = at.get(i) - at.get(i - 1);
                // The first may also wait for the client's next look at its queues.
                long late = i == 1 ? 45_000 : 10_000;
                assertTrue(waited >= i * 1000L - 100 && waited < i * 1000L + late, "retry " + i + " came after " + waited + " ms; tries at " + at);
            }
            List<MessageExt> dead = mq.readAll("%DLQ%" + group, 1);
            assertEquals(List.of("poison"), Mq.texts(dead));
            assertEquals("T", dead.get(0).getTags());
            assertEquals("k", dead.get(0).getKeys());
            assertEquals(topic, dead.get(0).getProperty("RETRY_TOPIC"));
            assertEquals(id, dead.get(0).getMsgId());
            assertEquals(4, counts.size(), "no try after the last");
        }
    }

    /**
     * The broker makes %RETRY%group at the first heartbeat, when the consumer has already asked for its route in vain; left alone it
     * asks again after 30 s. Here it asks at once, so that the waits measured are the broker's.
     */
    private static void ownRetryQueue(DefaultMQPushConsumer consumer, String group) {
        Mq.await("the queue of %RETRY%" + group, () -> {
            consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().updateTopicRouteInfoFromNameServer("%RETRY%" + group);
            consumer.getDefaultMQPushConsumerImpl().doRebalance();
            return owned(consumer, "%RETRY%" + group) == 1;
        });
    }

    @Test
    void aRestartedConsumerGoesOnWhereItStopped() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("restart", 4);
            String group = Mq.name("group");
            Set<String> first = sendNumbered(mq, topic, "first", 40);
            Sink before = new Sink();
            DefaultMQPushConsumer consumer = start(mq, group, topic, "*", before);
            Mq.await("the first messages", () -> before.got.size() == 40, before.got::size);
            // The listener has them a moment before the client counts them as consumed.
            Mq.await("40 consumed messages", () -> consumedOffsets(consumer, topic) == 40, () -> consumedOffsets(consumer, topic));
            consumer.shutdown();
            Set<String> second = sendNumbered(mq, topic, "second", 40);
            Sink after = new Sink();
            start(mq, group, topic, "*", after);
            Mq.await("the second messages", () -> after.got.size() >= 40, after.got::size);
            assertEquals(first, new HashSet<>(before.texts()));
            assertEquals(second, new HashSet<>(after.texts()));
            assertEquals(40, after.got.size());
        }
    }

    private static long consumedOffsets(DefaultMQPushConsumer consumer, String topic) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(topic))
            .mapToLong(queue -> consumer.getDefaultMQPushConsumerImpl().getOffsetStore().readOffset(queue, ReadOffsetType.READ_FROM_MEMORY))
            .sum();
    }

    /** A new group that asks for the last offset still gets all of a queue that the broker has whole and in memory. */
    @Test
    void aNewGroupOnAYoungTopicStartsAtItsBeginning() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("young", 2);
            Set<String> sent = sendNumbered(mq, topic, "m", 20);
            Sink sink = new Sink();
            DefaultMQPushConsumer consumer = mq.push(Mq.name("group"));
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener(sink);
            consumer.start();
            Mq.await("all messages", () -> sink.got.size() == 20, sink.got::size);
            assertEquals(sent, new HashSet<>(sink.texts()));
        }
    }

    /** A pull that waits at the broker is answered when a message comes, not when its time is up. */
    @Test
    void aWaitingConsumerHearsOfAMessageAtOnce() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("wake", 1);
            Sink sink = new Sink();
            DefaultMQPushConsumer consumer = start(mq, Mq.name("group"), topic, "*", sink);
            Mq.await("the queue", () -> owned(consumer, topic) == 1);
            sendNumbered(mq, topic, "warm", 1);
            Mq.await("the first message", () -> sink.got.size() == 1);
            DefaultMQProducer producer = mq.producer();
            List<Long> waits = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                Thread.sleep(20 + i * 7 % 40);
                int before = sink.got.size();
                long start = System.nanoTime();
                Mq.send(producer, Mq.message(topic, "T", "m" + i));
                while (sink.got.size() == before && System.nanoTime() - start < 5_000_000_000L) {
                    Thread.sleep(1);
                }
                waits.add((System.nanoTime() - start) / 1_000_000);
            }
            List<Long> sorted = waits.stream().sorted().toList();
            assertTrue(sorted.get(10) < 500, "half came later than 500 ms: " + waits);
            assertTrue(sorted.get(19) < 4000, "one waited for the end of its pull: " + waits);
        }
    }

    @Test
    void messagesAreConsumedWhileTheyAreProduced() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("flow", 4);
            Sink sink = new Sink();
            DefaultMQPushConsumer consumer = start(mq, Mq.name("group"), topic, "*", sink);
            consumer.setPullBatchSize(32);
            Set<String> sent = sendNumbered(mq, topic, "m", 1500);
            Mq.await("all messages", () -> sink.got.size() >= 1500, sink.got::size);
            assertEquals(sent, new HashSet<>(sink.texts()));
            assertEquals(1500, sink.got.size());
        }
    }

    @Test
    void oneConsumerReadsSeveralTopics() throws Exception {
        try (Mq mq = new Mq()) {
            String a = mq.topic("multia", 2);
            String b = mq.topic("multib", 3);
            Sink sink = new Sink();
            DefaultMQPushConsumer consumer = mq.push(Mq.name("group"));
            consumer.subscribe(a, "*");
            consumer.subscribe(b, "T");
            consumer.registerMessageListener(sink);
            consumer.start();
            Set<String> sent = sendNumbered(mq, a, "a", 20);
            sent.addAll(sendNumbered(mq, b, "b", 20));
            Mq.await("all messages", () -> sink.got.size() == 40, sink.got::size);
            assertEquals(sent, new HashSet<>(sink.texts()));
            for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(b)) {
                assertFalse(queue.getQueueId() > 2);
            }
        }
    }
}
