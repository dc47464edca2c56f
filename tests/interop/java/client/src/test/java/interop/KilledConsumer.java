package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** A consumer in a process of its own, to be killed without a chance to say goodbye. */
public final class KilledConsumer {
    private KilledConsumer() {
    }

    static Process start(String group, String topic) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(ProcessHandle.current().info().command().orElse("java"), "-Xmx128m", "-XX:TieredStopAtLevel=1",
            "-Djava.net.preferIPv4Stack=true", "-Drocketmq.client.logUseSlf4j=false", "-Duser.home=" + System.getProperty("user.home"),
            "-cp", System.getProperty("java.class.path"), KilledConsumer.class.getName(), group, topic);
        builder.redirectErrorStream(true);
        Process process = builder.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()));
        Thread drain = new Thread(() -> lines.lines().forEach(line -> { }));
        drain.setDaemon(true);
        drain.start();
        return process;
    }

    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = new Mq().push(args[0]);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener(new Sink());
        consumer.start();
        System.out.println("consuming");
        Thread.sleep(120_000);
    }
}
