package interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;

class ProduceTest {
    private static final int MESSAGE_ILLEGAL = 13;

    @Test
    void syncSendsGetOffsetsInARow() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("sync", 2);
            DefaultMQProducer producer = mq.producer();
            MessageQueue queue = Mq.queues(producer, topic).get(1);
            for (int i = 0; i < 20; i++) {
                SendResult result = producer.send(Mq.message(topic, "T", "m" + i), queue);
                assertEquals(SendStatus.SEND_OK, result.getSendStatus());
                assertEquals(i, result.getQueueOffset());
                assertEquals(queue, result.getMessageQueue());
                assertTrue(MessageDecoder.decodeMessageId(result.getOffsetMsgId()).getAddress().toString().endsWith(System.getenv("BROKER_ADDR")),
                    "the offset message id names the broker: " + result.getOffsetMsgId());
            }
            assertEquals(IntStream.range(0, 20).mapToObj(i -> "m" + i).toList(), Mq.texts(mq.readAll(topic, 20)));
        }
    }

    @Test
    void asyncSendsAllAnswer() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("async", 4);
            DefaultMQProducer producer = mq.producer();
            CountDownLatch answers = new CountDownLatch(200);
            ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
            for (int i = 0; i < 200; i++) {
                producer.send(Mq.message(topic, "T", "m" + i), new SendCallback() {
                    @Override
                    public void onSuccess(SendResult result) {
                        answers.countDown();
                    }

                    @Override
                    public void onException(Throwable e) {
                        failures.add(e);
                        answers.countDown();
                    }
                });
            }
            assertTrue(answers.await(Mq.SECONDS, TimeUnit.SECONDS), answers.getCount() + " sends had no answer");
            assertEquals(List.of(), List.copyOf(failures));
            assertEquals(200, mq.readAll(topic, 200).stream().map(Mq::text).distinct().count());
        }
    }

    @Test
    void oneWaySendsArrive() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("oneway", 4);
            DefaultMQProducer producer = mq.producer();
            for (int i = 0; i < 50; i++) {
                producer.sendOneway(Mq.message(topic, "T", "m" + i));
            }
            assertEquals(50, mq.readAll(topic, 50).stream().map(Mq::text).distinct().count());
        }
    }

    @Test
    void aBatchBecomesSingleMessagesInARow() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("batch", 2);
            DefaultMQProducer producer = mq.producer();
            List<Message> batch = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                Message message = new Message(topic, "T" + i % 3, "key" + i, ("m" + i).getBytes());
                message.putUserProperty("number", "" + i);
                batch.add(message);
            }
            SendResult result = producer.send(batch);
            assertEquals(SendStatus.SEND_OK, result.getSendStatus());
            assertEquals(30, result.getMsgId().split(",").length);
            List<MessageExt> got = mq.readAll(topic, 30);
            assertEquals(30, got.size());
            for (int i = 0; i < 30; i++) {
                MessageExt message = got.get(i);
                assertEquals("m" + i, Mq.text(message));
                assertEquals(i, message.getQueueOffset());
                assertEquals("T" + i % 3, message.getTags());
                assertEquals("key" + i, message.getKeys());
                assertEquals("" + i, message.getUserProperty("number"));
                assertEquals(result.getMessageQueue().getQueueId(), message.getQueueId());
            }
        }
    }

    @Test
    void messagesOfOneShardKeepTheirOrder() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("shards", 4);
            DefaultMQProducer producer = mq.producer();
            for (int i = 0; i < 160; i++) {
                int shard = i % 8;
                SendResult result = producer.send(Mq.message(topic, "T", shard + ":" + i / 8),
                    (queues, message, argument) -> queues.get((Integer) argument % queues.size()), shard);
                assertEquals(SendStatus.SEND_OK, result.getSendStatus());
            }
            Map<String, Integer> next = new HashMap<>();
            List<MessageExt> got = mq.readAll(topic, 160);
            assertEquals(160, got.size());
            for (MessageExt message : got) {
                String[] parts = Mq.text(message).split(":");
                assertEquals(next.getOrDefault(parts[0], 0), Integer.valueOf(parts[1]), "order within shard " + parts[0]);
                next.merge(parts[0], 1, Integer::sum);
            }
        }
    }

    /** The servers are started with level 1 = 1 s, level 2 = 2 s. */
    @Test
    void delayedMessagesDoNotComeEarly() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("delay", 1);
            DefaultMQProducer producer = mq.producer();
            Map<String, Long> arrived = new java.util.concurrent.ConcurrentHashMap<>();
            DefaultMQPushConsumer consumer = mq.push(Mq.name("group"));
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(m -> arrived.put(Mq.text(m) + "@" + m.getTopic(), System.currentTimeMillis()));
                return org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            Map<String, Long> due = new HashMap<>();
            for (int level : new int[] {2, 1, 0}) {
                Message message = Mq.message(topic, "T", "level" + level);
                message.setDelayTimeLevel(level);
                due.put("level" + level + "@" + topic, System.currentTimeMillis() + level * 1000L);
                Mq.send(producer, message);
            }
            Mq.await("three messages", () -> arrived.size() == 3, arrived::keySet);
            due.forEach((text, time) -> assertTrue(arrived.get(text) >= time - 50, text + " came " + (time - arrived.get(text)) + " ms early"));
            due.forEach((text, time) -> assertTrue(arrived.get(text) <= time + 5000, text + " came " + (arrived.get(text) - time) + " ms late"));
        }
    }

    @Test
    void everythingInAMessageArrives() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("content", 1);
            DefaultMQProducer producer = mq.producer();
            byte[] body = new byte[3000];
            new Random(7).nextBytes(body);
            Message message = new Message(topic, "标签", body);
            message.setKeys(List.of("key1", "ключ2"));
            message.setFlag(-17);
            message.putUserProperty("имя", "значение \uD83D\uDE80 with = : , \" blanks");
            message.putUserProperty("p", "x".repeat(2000));
            message.setBuyerId("buyer");
            message.setWaitStoreMsgOK(false);
            long before = System.currentTimeMillis();
            SendResult result = Mq.send(producer, message);
            MessageExt got = mq.readAll(topic, 1).get(0);
            assertArrayEquals(body, got.getBody());
            assertEquals("标签", got.getTags());
            assertEquals("key1 ключ2", got.getKeys());
            assertEquals(-17, got.getFlag());
            assertEquals("значение \uD83D\uDE80 with = : , \" blanks", got.getUserProperty("имя"));
            assertEquals("x".repeat(2000), got.getUserProperty("p"));
            assertEquals("buyer", got.getBuyerId());
            assertEquals(result.getMsgId(), got.getMsgId());
            assertEquals(0, got.getReconsumeTimes());
            assertEquals(0, got.getQueueOffset());
            assertTrue(got.getBornTimestamp() >= before - 1 && got.getStoreTimestamp() >= before - 1 && got.getStoreTimestamp() <= before + 10_000);
            assertTrue(got.getBornHostString().startsWith("127."), got.getBornHostString());
            assertTrue(got.getStoreHost().toString().endsWith(System.getenv("BROKER_ADDR")), got.getStoreHost().toString());
        }
    }

    @Test
    void anEmptyTagAndNoKeysAreFine() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("bare", 1);
            Mq.send(mq.producer(), new Message(topic, "x".getBytes()));
            MessageExt got = mq.readAll(topic, 1).get(0);
            assertEquals("x", Mq.text(got));
            assertTrue(got.getTags() == null || got.getTags().isEmpty());
            assertTrue(got.getKeys() == null || got.getKeys().isEmpty());
        }
    }

    @Test
    void aTopicIsMadeByTheFirstSend() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = Mq.name("auto");
            DefaultMQProducer producer = mq.producer();
            Mq.send(producer, Mq.message(topic, "T", "first"));
            Mq.await("a route with 4 queues", () -> Mq.queues(producer, topic).size() == 4);
            assertEquals(List.of("first"), Mq.texts(mq.readAll(topic, 1)));
        }
    }

    @Test
    void almostFourMebibytesPass() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("big", 1);
            DefaultMQProducer producer = mq.producer();
            producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            byte[] body = new byte[4 * 1024 * 1024 - 1024];
            new Random(1).nextBytes(body);
            Mq.send(producer, new Message(topic, body));
            assertArrayEquals(body, mq.readAll(topic, 1).get(0).getBody());
        }
    }

    @Test
    void moreThanFourMebibytesAreRefusedWithAReason() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("toobig", 1);
            DefaultMQProducer producer = mq.producer();
            byte[] body = new byte[4 * 1024 * 1024 + 1];
            MQClientException own = assertThrows(MQClientException.class, () -> producer.send(new Message(topic, body)));
            assertEquals(MESSAGE_ILLEGAL, own.getResponseCode());

            // A client that is told to allow more hears it from the broker.
            producer.setMaxMessageSize(16 * 1024 * 1024);
            producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            MQBrokerException refused = assertThrows(MQBrokerException.class, () -> producer.send(new Message(topic, body)));
            assertEquals(MESSAGE_ILLEGAL, refused.getResponseCode());
            assertNotNull(refused.getErrorMessage());
            assertFalse(refused.getErrorMessage().isBlank());

            Mq.send(producer, Mq.message(topic, "T", "still alive"));
            assertEquals(List.of("still alive"), Mq.texts(mq.readAll(topic, 1)));
        }
    }

    @Test
    void tooManyPropertiesAreRefused() throws Exception {
        try (Mq mq = new Mq()) {
            String topic = mq.topic("props", 1);
            Message message = Mq.message(topic, "T", "x");
            message.putUserProperty("long", "v".repeat(40_000));
            MQBrokerException refused = assertThrows(MQBrokerException.class, () -> mq.producer().send(message));
            assertEquals(MESSAGE_ILLEGAL, refused.getResponseCode());
        }
    }

    @Test
    void compressedBodiesPassThrough() throws Exception {
        try (Mq mq = new Mq()) {
            byte[] body = "the same words again and again; ".repeat(2000).getBytes();
            // Read when a producer is made; one test makes them one after the other.
            synchronized (System.getProperties()) {
                for (String type : List.of("ZLIB", "LZ4", "ZSTD")) {
                    System.setProperty("rocketmq.message.compressType", type);
                    String topic = mq.topic("compress" + type, 1);
                    Mq.send(mq.producer(), new Message(topic, body));
                    MessageExt got = mq.readAll(topic, 1).get(0);
                    assertArrayEquals(body, got.getBody(), type);
                    assertTrue(got.getStoreSize() < body.length / 4, type + " was stored with " + got.getStoreSize() + " bytes");
                }
            }
            System.clearProperty("rocketmq.message.compressType");
        }
    }
}
