import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs mqadmin commands against two pairs of servers, one of them Java's own, and compares what is printed after numbers, times,
 * addresses and ids have been taken out. One process for all commands: `java -cp PEER Shapes.java NS1 BROKER1 NS2 BROKER2 ALLOWED`.
 */
public final class Shapes {
    private static final PrintStream OUT = System.out;
    private static final String MARK = "answer:";
    private static final int TRIES = 10;
    private static final long BETWEEN_TRIES_MILLIS = 300;

    /** How a command's lines are compared. */
    private enum Lines { IN_ORDER, ANY_ORDER, KEYS }

    private record Step(String command, Lines lines, boolean repeatable) {
    }

    /** The process that runs the commands for one pair of servers: mqadmin waits a lot, so the two pairs are asked at once. */
    private static final class Worker {
        private final Process process;
        private final BufferedReader answers;

        Worker(String namesrv, String broker) throws IOException {
            ProcessBuilder builder = new ProcessBuilder(ProcessHandle.current().info().command().orElse("java"), "-Xmx192m",
                "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", "-Duser.home=" + System.getProperty("user.home"),
                "-Drmq.logback.configurationFile=rmq.tools.logback.xml", "-cp", System.getProperty("java.class.path"),
                Shapes.class.getName(), namesrv, broker);
            builder.redirectError(ProcessBuilder.Redirect.INHERIT);
            process = builder.start();
            answers = process.inputReader(StandardCharsets.UTF_8);
        }

        void ask(String command) throws IOException {
            process.outputWriter(StandardCharsets.UTF_8).append(command).append('\n').flush();
        }

        /** What the command printed. The answer is the line that starts with the mark; anything else is a log line gone astray. */
        String answer() throws IOException {
            for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                if (line.startsWith(MARK)) {
                    return new String(Base64.getDecoder().decode(line.substring(MARK.length())), StandardCharsets.UTF_8);
                }
            }
            throw new IOException("the worker process ended");
        }
    }

    /** A pair of servers, with a producer and a consumer at work so that there is something to see. */
    private static final class Servers {
        final String namesrv;
        final String broker;
        final Map<String, String> names = new HashMap<>();

        Servers(String namesrv, String broker) {
            this.namesrv = namesrv;
            this.broker = broker;
            names.put("broker", broker);
        }

        void populate() throws Exception {
            DefaultMQProducer producer = new DefaultMQProducer("admin_producers");
            producer.setNamesrvAddr(namesrv);
            producer.setInstanceName("producer" + broker);
            producer.setSendMsgTimeout(10_000);
            producer.start();
            AtomicInteger consumed = new AtomicInteger();
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("admin_consumers");
            consumer.setNamesrvAddr(namesrv);
            consumer.setInstanceName("consumer" + broker);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.subscribe("admin_work", "TagA || TagB");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                consumed.addAndGet(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            SendResult sent = null;
            for (int i = 0; i < 8; i++) {
                Message message = new Message("admin_work", "TagA", "key" + i, "hello".getBytes(StandardCharsets.UTF_8));
                message.putUserProperty("colour", "blue");
                sent = producer.send(message, (queues, m, number) -> queues.get((Integer) number % queues.size()), i);
            }
            producer.send(new Message("admin_work", "TagC", "key", "filtered".getBytes(StandardCharsets.UTF_8)),
                (queues, m, number) -> queues.get(0), 0);
            consumer.start();
            names.put("offsetId", sent.getOffsetMsgId());
            names.put("uniqueId", sent.getMsgId());
            names.put("queue", "" + sent.getMessageQueue().getQueueId());
            names.put("clientId", consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId());
            long end = System.currentTimeMillis() + 60_000;
            while (consumed.get() < 8) {
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException("only " + consumed + " of 8 messages were consumed through " + broker);
                }
                Thread.sleep(50);
            }
            consumer.getDefaultMQPushConsumerImpl().getOffsetStore().persistAll(
                new HashSet<>(consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()));
        }

        /** Everything the command prints, its error stream included. */
        String run(String command) {
            String text = command;
            for (Map.Entry<String, String> name : names.entrySet()) {
                text = text.replace("${" + name.getKey() + "}", name.getValue());
            }
            List<String> arguments = new ArrayList<>(Arrays.asList(text.split(" ")));
            arguments.add("-n");
            arguments.add(namesrv);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(bytes, true, StandardCharsets.UTF_8);
            PrintStream err = System.err;
            System.setOut(capture);
            System.setErr(capture);
            try {
                forgetCommands();
                MQAdminStartup.main0(arguments.toArray(new String[0]), null);
            } catch (Throwable e) {
                e.printStackTrace(capture);
            } finally {
                System.setOut(OUT);
                System.setErr(err);
            }
            return bytes.toString(StandardCharsets.UTF_8);
        }
    }

    /** A command object is made for one use (it keeps its stopped producer); main0 makes new ones but finds the old ones first. */
    private static void forgetCommands() throws ReflectiveOperationException {
        Field commands = MQAdminStartup.class.getDeclaredField("SUB_COMMANDS");
        commands.setAccessible(true);
        ((List<?>) commands.get(null)).clear();
    }

    private static Step ordered(String command) {
        return new Step(command, Lines.IN_ORDER, true);
    }

    private static Step sorted(String command) {
        return new Step(command, Lines.ANY_ORDER, true);
    }

    private static Step keys(String command) {
        return new Step(command, Lines.KEYS, true);
    }

    private static Step once(String command) {
        return new Step(command, Lines.IN_ORDER, false);
    }

    private static final List<Step> STEPS = List.of(
        ordered("clusterList"),
        ordered("clusterList -m"),
        sorted("topicList"),
        sorted("topicList -c"),
        once("updateTopic -c DefaultCluster -t admin_topic -r 4 -w 4"),
        once("updateTopic -b ${broker} -t admin_fifo -r 2 -w 2 -p 6 -o true -a +message.type=FIFO"),
        ordered("topicRoute -t admin_topic"),
        ordered("topicRoute -t admin_topic -l"),
        ordered("topicRoute -t admin_fifo"),
        ordered("topicClusterList -t admin_topic"),
        ordered("topicStatus -t admin_topic"),
        once("sendMessage -t admin_topic -p hello -k adminkey -c TagA -b broker-a -i 1"),
        once("sendMessage -t admin_fifo -p hello"),
        ordered("topicStatus -t admin_work"),
        ordered("consumeMessage -t admin_topic -b broker-a -i 1 -o 0 -c 1"),
        ordered("consumeMessage -t admin_work -c 8"),
        ordered("queryMsgById -t admin_work -i ${offsetId}"),
        ordered("queryMsgById -t admin_work -i ${uniqueId}"),
        ordered("queryMsgByUniqueKey -t admin_work -i ${uniqueId}"),
        ordered("queryMsgByKey -t admin_work -k key7"),
        ordered("queryMsgByKey -t admin_topic -k adminkey"),
        ordered("queryMsgByOffset -t admin_work -b broker-a -i ${queue} -o 0"),
        once("updateSubGroup -c DefaultCluster -g admin_group -r 3 -q 2"),
        once("updateSubGroup -b ${broker} -g admin_group -s false"),
        ordered("consumerProgress -g admin_consumers"),
        sorted("consumerProgress"),
        ordered("consumerConnection -g admin_consumers"),
        ordered("consumerStatus -g admin_consumers"),
        ordered("consumerStatus -g admin_consumers -i ${clientId}"),
        ordered("producerConnection -g admin_producers -t admin_work"),
        keys("brokerStatus -b ${broker}"),
        keys("brokerStatus -c DefaultCluster"),
        keys("getNamesrvConfig"),
        once("updateNamesrvConfig -k orderMessageEnable -v true"),
        keys("getNamesrvConfig"),
        once("updateKvConfig -s ADMIN_NAMESPACE -k colour -v blue"),
        once("deleteKvConfig -s ADMIN_NAMESPACE -k colour"),
        once("updateOrderConf -t admin_topic -m put -v broker-a:4"),
        ordered("updateOrderConf -t admin_topic -m get"),
        ordered("topicRoute -t admin_topic"),
        once("updateOrderConf -t admin_topic -m delete"),
        ordered("updateOrderConf -t admin_topic -m get"),
        once("wipeWritePerm -b broker-a"),
        ordered("topicRoute -t admin_topic"),
        once("addWritePerm -b broker-a"),
        ordered("topicRoute -t admin_topic"),
        once("updateTopicPerm -b ${broker} -t admin_topic -p 4"),
        ordered("topicRoute -t admin_topic"),
        once("deleteTopic -c DefaultCluster -t admin_topic"),
        ordered("topicRoute -t admin_topic"),
        once("deleteSubGroup -c DefaultCluster -g admin_group"),
        ordered("topicRoute -t admin_absent"),
        ordered("topicStatus -t admin_absent"),
        ordered("consumerConnection -g admin_absent"),
        ordered("consumerProgress -g admin_absent"),
        ordered("producerConnection -g admin_absent -t admin_work"),
        ordered("queryMsgByKey -t admin_work -k absent"),
        once("wipeWritePerm -b admin_absent"),
        once("deleteTopic -c admin_absent -t admin_work"),
        sorted("topicList"));

    /** A difference that is meant: regular expressions for the command and the line, and why. */
    private record Allowed(Pattern command, Pattern line, String reason) {
    }

    private static List<Allowed> allowed(Path file) throws Exception {
        List<Allowed> all = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            if (!line.isBlank() && !line.startsWith("#")) {
                String[] parts = line.split("\t");
                all.add(new Allowed(Pattern.compile(parts[0]), Pattern.compile(parts[1]), parts[2]));
            }
        }
        return all;
    }

    private static final String[][] REPLACEMENTS = {
        // Only the first line of each exception: who said what, not where in mqadmin.
        {"(?m)^\\s+(at |\\.\\.\\. )[^\\n]*\\n?", ""},
        {"For more information, please visit the url, [^\\n]*", "FAQ"},
        {"[0-9A-F]{56}|[0-9A-F]{32}", "ID"},
        {"\\$\\$Lambda[0-9a-zA-Z$/.]*", "LAMBDA"},
        {"(?m)@[0-9a-f]{4,8}$", "@HASH"},
        {"\\d+\\.\\d+\\.\\d+\\.\\d+(:\\d+)?", "ADDR"},
        {"\\d{4}-\\d\\d-\\d\\d[ T]\\d\\d:\\d\\d:\\d\\d([.,]\\d+)?|#\\d{4}-\\d\\d-\\d\\d#\\d\\d:\\d\\d:\\d\\d", "TIME"},
        {"ADDR@[0-9#@a-zA-Z:.]+", "CLIENT"},
        {"(?<![A-Za-z_])-?\\d+(\\.\\d+)?(E-?\\d+)?%?", "N"},
        {"N (KiB|MiB|GiB|TiB|bytes|B)", "SIZE"},
        {"[ \\t]+", " "},
        {"-{5,}", "-----"},
    };

    private static List<String> shape(String text, Lines lines, String host) {
        String shaped = text.replace(host, "HOST").replaceAll("(/[A-Za-z0-9_.\\-]+){2,}", "PATH");
        for (String[] replacement : REPLACEMENTS) {
            shaped = shaped.replaceAll(replacement[0], replacement[1]);
        }
        List<String> all = new ArrayList<>();
        for (String line : shaped.split("\\R")) {
            if (!line.isBlank()) {
                all.add(line.strip());
            }
        }
        if (lines == Lines.KEYS) {
            Pattern key = Pattern.compile("^([^=:]+?)\\s*[=:]");
            Set<String> found = new TreeSet<>();
            for (String line : all) {
                Matcher matcher = key.matcher(line);
                found.add(matcher.find() ? matcher.group(1) : line);
            }
            return List.copyOf(found);
        }
        return lines == Lines.ANY_ORDER ? all.stream().sorted().toList() : all;
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 2) {
            work(new Servers(args[0], args[1]));
        } else {
            compare(new Worker(args[0], args[1]), new Worker(args[2], args[3]), allowed(Path.of(args[4])));
        }
    }

    private static void work(Servers servers) throws Exception {
        servers.populate();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            byte[] printed = servers.run(command).getBytes(StandardCharsets.UTF_8);
            OUT.println(MARK + Base64.getEncoder().encodeToString(printed));
            OUT.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void compare(Worker yardstick, Worker tested, List<Allowed> allowed) throws Exception {
        String host = InetAddress.getLocalHost().getHostName();
        int passed = 0;
        int failed = 0;
        for (Step step : STEPS) {
            long start = System.currentTimeMillis();
            List<String> wrong = List.of();
            String[] said = new String[2];
            int tries = 0;
            do {
                if (tries > 0) {
                    Thread.sleep(BETWEEN_TRIES_MILLIS);
                }
                yardstick.ask(step.command);
                tested.ask(step.command);
                said[0] = yardstick.answer();
                said[1] = tested.answer();
                wrong = differences(step, allowed, shape(said[0], step.lines, host), shape(said[1], step.lines, host));
                tries++;
            } while (!wrong.isEmpty() && step.repeatable && tries < TRIES);
            if (System.getenv("SHOW") != null) {
                OUT.println("=== " + step.command + "\n" + said[0]);
            }
            String spent = step.command + " (" + (System.currentTimeMillis() - start) + " ms, " + tries + (tries == 1 ? " try)" : " tries)");
            if (wrong.isEmpty()) {
                passed++;
                OUT.println("ok      " + spent);
            } else {
                failed++;
                OUT.println("FAILED  " + spent + "\n  " + String.join("\n  ", wrong) + "\n  --- java printed\n" + said[0].indent(4)
                    + "  --- tested printed\n" + said[1].indent(4));
            }
            OUT.flush();
        }
        yardstick.process.destroy();
        tested.process.destroy();
        OUT.println(passed + " passed, " + failed + " failed");
        OUT.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }

    private static List<String> differences(Step step, List<Allowed> allowed, List<String> want, List<String> got) {
        List<String> left = keep(step, allowed, want);
        List<String> right = keep(step, allowed, got);
        if (left.equals(right)) {
            return List.of();
        }
        List<String> wrong = new ArrayList<>();
        List<String> surplus = new ArrayList<>(right);
        for (String line : left) {
            if (!surplus.remove(line)) {
                wrong.add("missing: " + line);
            }
        }
        surplus.forEach(line -> wrong.add("surplus: " + line));
        if (wrong.isEmpty()) {
            wrong.add("the same lines in another order");
        }
        return wrong;
    }

    private static List<String> keep(Step step, List<Allowed> allowed, List<String> lines) {
        List<String> kept = new ArrayList<>(lines);
        for (Allowed one : allowed) {
            if (one.command.matcher(step.command).find()) {
                kept.removeIf(line -> one.line.matcher(line).matches());
            }
        }
        return kept;
    }
}
