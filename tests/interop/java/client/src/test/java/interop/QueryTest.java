package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;

class QueryTest {
    @Test
    void messagesAreFoundByKey() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("key", 2);
            DefaultMQProducer producer = mq.producer();
            for (int i = 0; i < 10; i++) {
                Mq.send(producer, new Message(topic, "T", i % 2 == 0 ? "even all" : "odd all", ("m" + i).getBytes()));
            }
            assertEquals(Set.of("m0", "m2", "m4", "m6", "m8"), byKey(producer, topic, "even", 5));
            assertEquals(10, byKey(producer, topic, "all", 10).size());
            MQClientException none = assertThrows(MQClientException.class, () -> query(producer, topic, "absent"));
            assertTrue(none.getMessage().contains("no message"), none.getMessage());
        }
    }

    private static QueryResult query(DefaultMQProducer producer, String topic, String key) throws Exception {
        return producer.queryMessage(topic, key, 32, 0, System.currentTimeMillis() + 60_000);
    }

    /** The index is written behind the sends, so the first answer may have too few. */
    private static Set<String> byKey(DefaultMQProducer producer, String topic, String key, int expected) {
        List<Set<String>> last = new ArrayList<>(List.of(Set.of()));
        Mq.await(expected + " messages with key " + key, () -> {
            try {
                last.set(0, query(producer, topic, key).getMessageList().stream().map(Mq::text).collect(Collectors.toSet()));
            } catch (Exception e) {
                return false;
            }
            return last.get(0).size() == expected;
        }, () -> last.get(0));
        return last.get(0);
    }

    @Test
    void aMessageIsFoundByEitherId() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("id", 1);
            DefaultMQProducer producer = mq.producer();
            SendResult sent = Mq.send(producer, Mq.message(topic, "T", "find me"));
            MessageExt byOffset = producer.viewMessage(topic, sent.getOffsetMsgId());
            assertEquals("find me", Mq.text(byOffset));
            assertEquals(topic, byOffset.getTopic());
            List<MessageExt> byUnique = new ArrayList<>();
            Mq.await("the message of unique id " + sent.getMsgId(), () -> {
                try {
                    MessageExt found = producer.viewMessage(topic, sent.getMsgId());
                    if (found != null) {
                        byUnique.add(found);
                    }
                    return found != null;
                } catch (Exception e) {
                    return false;
                }
            });
            assertEquals("find me", Mq.text(byUnique.get(0)));
        }
    }

    @Test
    void anIdThatWasNeverGivenIsAnError() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("noid", 1);
            DefaultMQProducer producer = mq.producer();
            SendResult sent = Mq.send(producer, Mq.message(topic, "T", "x"));
            String wrong = sent.getOffsetMsgId().substring(0, 16) + "00000FFFFFFFFFFF";
            assertThrows(Exception.class, () -> producer.viewMessage(topic, wrong));
        }
    }

    @Test
    void offsetsAndTimesAreToldForAQueue() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("offsets", 1);
            DefaultMQProducer producer = mq.producer();
            MessageQueue queue = Mq.queues(producer, topic).get(0);
            assertEquals(0, producer.minOffset(queue));
            assertEquals(0, producer.maxOffset(queue));
            long start = System.currentTimeMillis();
            for (int i = 0; i < 5; i++) {
                Mq.send(producer, Mq.message(topic, "T", "early" + i));
            }
            Thread.sleep(60);
            long between = System.currentTimeMillis();
            Thread.sleep(60);
            for (int i = 0; i < 5; i++) {
                Mq.send(producer, Mq.message(topic, "T", "late" + i));
            }
            assertEquals(0, producer.minOffset(queue));
            Mq.await("a max offset of 10", () -> maxOffset(producer, queue) == 10, () -> maxOffset(producer, queue));
            assertEquals(5, producer.searchOffset(queue, between));
            assertEquals(0, producer.searchOffset(queue, start - 60_000));
            assertEquals(10, producer.searchOffset(queue, System.currentTimeMillis() + 60_000));
            long earliest = producer.earliestMsgStoreTime(queue);
            assertTrue(earliest >= start - 1000 && earliest <= between, "earliest " + earliest + ", start " + start);
        }
    }

    private static long maxOffset(DefaultMQProducer producer, MessageQueue queue) {
        try {
            return producer.maxOffset(queue);
        } catch (MQClientException e) {
            return -1;
        }
    }

    @Test
    void aTopicHasTheQueuesAskedFor() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("seven", 7);
            DefaultMQProducer producer = mq.producer();
            List<MessageQueue> queues = Mq.queues(producer, topic);
            assertEquals(7, queues.size());
            for (int i = 0; i < 7; i++) {
                assertEquals(i, queues.get(i).getQueueId());
                assertEquals("broker-a", queues.get(i).getBrokerName());
            }
        }
    }

    @Test
    void anUnknownTopicIsAnError() throws Exception {
        try (Mq mq = new Mq()) {
            DefaultMQProducer producer = mq.producer();
            assertThrows(MQClientException.class, () -> producer.fetchPublishMessageQueues(Mq.name("unknown")));
        }
    }
}
