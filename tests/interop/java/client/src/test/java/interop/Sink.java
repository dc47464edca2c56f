package interop;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/** Takes everything and remembers it. */
final class Sink implements MessageListenerConcurrently {
    final Queue<MessageExt> got = new ConcurrentLinkedQueue<>();

    @Override
    public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        got.addAll(messages);
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    List<String> texts() {
        return Mq.texts(got);
    }
}
