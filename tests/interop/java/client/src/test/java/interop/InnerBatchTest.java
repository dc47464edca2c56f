package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;

/** Topics with queue.type=BatchCQ: a batch is stored as one record, which the consumer takes apart. */
class InnerBatchTest {
    private static final int BATCHES = 12;
    private static final int SIZE = 10;

    @Test
    void consumersGetTheSingleMessagesOfABatch() throws Exception {
        assumeTrue(attributes() != null, "clients before 5.0 know no such topics");
        try (Mq mq = new Mq()) {
            DefaultMQProducer producer = mq.producer();
            String topic = Mq.name("inner");
            create(producer, topic);
            Mq.await("the route of " + topic, () -> Mq.queues(producer, topic).size() == 1);
            for (int b = 0; b < BATCHES; b++) {
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < SIZE; i++) {
                    batch.add(Mq.message(topic, "T", "m" + (b * SIZE + i)));
                }
                SendResult result = producer.send(batch);
                assertEquals(b * SIZE, result.getQueueOffset());
                assertFalse(result.getOffsetMsgId().contains(","), result.getOffsetMsgId());
                assertFalse(result.getMsgId().contains(","), result.getMsgId());
            }
            Mq.send(producer, Mq.message(topic, "T", "m" + BATCHES * SIZE));

            Sink sink = new Sink();
            DefaultMQPushConsumer consumer = mq.push(Mq.name("group"));
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener(sink);
            consumer.start();
            int count = BATCHES * SIZE + 1;
            Mq.await(count + " messages", () -> sink.got.size() >= count, sink.got::size);
            List<MessageExt> got = new ArrayList<>(sink.got);
            got.sort(Comparator.comparingLong(MessageExt::getQueueOffset));
            assertEquals(IntStream.range(0, count).mapToObj(i -> "m" + i).toList(), Mq.texts(got));
            assertEquals(IntStream.range(0, count).mapToObj(i -> (long) i).toList(),
                got.stream().map(MessageExt::getQueueOffset).toList());
            got.forEach(message -> assertEquals(topic, message.getTopic()));
        }
    }

    /** The client's own createTopic drops the attributes. */
    private static void create(DefaultMQProducer producer, String topic) throws Exception {
        TopicConfig config = new TopicConfig(topic);
        config.setReadQueueNums(1);
        config.setWriteQueueNums(1);
        @SuppressWarnings("unchecked")
        Map<String, String> attributes = (Map<String, String>) attributes().invoke(config);
        attributes.put("+queue.type", "BatchCQ");
        producer.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl()
            .createTopic(System.getenv("BROKER_ADDR"), "TBW102", config, 10_000);
    }

    private static Method attributes() {
        try {
            return TopicConfig.class.getMethod("getAttributes");
        } catch (NoSuchMethodException e) {
            return null;
        }
    }
}
