import java.io.File;
import java.lang.reflect.Method;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Java's own store on a directory: writes messages, prints what is in it, removes old files, ends in order or dies.
 *
 *   StorePeer ROOT COMMAND...   where a command is
 *     small | crc | ext         settings: small files, a checksum of the properties, consume queue extensions and light
 *                               queues (before all else)
 *     put ROUND N               writes the messages of a round
 *     report STEP               prints all queues, and the key queries of every STEP-th message
 *     clean N                   N steps of retention, whatever the age
 *     compact                   a round of compaction
 *     kill                      dies at the end instead of closing
 */
public class StorePeer {
    public static void main(String[] args) {
        try {
            run(args);
        } catch (Throwable failure) {
            // The store's threads would keep the process.
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void run(String[] args) throws Exception {
        String root = args[0];
        MessageStoreConfig config = config(root);
        boolean propertyCrc = false;
        boolean kill = false;
        DefaultMessageStore store = null;
        for (int i = 1; i < args.length; i++) {
            if (store == null && !"small crc ext".contains(args[i])) {
                store = open(config, propertyCrc);
            }
            switch (args[i]) {
                case "small":
                    small(config);
                    break;
                case "crc":
                    propertyCrc = true;
                    break;
                case "ext":
                    config.setEnableConsumeQueueExt(true);
                    Version.light(config);
                    break;
                case "put":
                    new Workload(store, args[++i]).put(Integer.parseInt(args[++i]));
                    break;
                case "report":
                    settle(store);
                    new Report(store, root, Integer.parseInt(args[++i])).print();
                    break;
                case "clean":
                    clean(store, config, Integer.parseInt(args[++i]));
                    break;
                case "compact":
                    Version.compact(store);
                    break;
                case "kill":
                    kill = true;
                    break;
                default:
                    throw new IllegalArgumentException(args[i]);
            }
        }
        System.out.flush();
        if (kill) {
            Runtime.getRuntime().halt(0);
        }
        store.shutdown();
        System.exit(0);
    }

    static MessageStoreConfig config(String root) {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + File.separator + "commitlog");
        config.setHaListenPort(0);
        config.setMaxMsgsNumBatch(1000000);
        // Without it the index loses what was put into its last file before a kill.
        config.setMessageIndexSafe(true);
        config.setCleanFileForciblyEnable(false);
        config.setDiskMaxUsedSpaceRatio(95);
        return config;
    }

    static void small(MessageStoreConfig config) {
        config.setMappedFileSizeCommitLog(1 << 20);
        config.setMappedFileSizeConsumeQueue(20 * 1000);
        config.setMappedFileSizeConsumeQueueExt(64 << 10);
        config.setMaxHashSlotNum(5000);
        config.setMaxIndexNum(20000);
        Version.small(config);
    }

    static DefaultMessageStore open(MessageStoreConfig config, boolean propertyCrc) throws Exception {
        DefaultMessageStore store = Version.store(config, propertyCrc);
        if (!store.load()) {
            System.out.println("load failed");
            Runtime.getRuntime().halt(1);
        }
        store.start();
        Version.quiet(store);
        settle(store);
        return store;
    }

    static void settle(DefaultMessageStore store) throws Exception {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    static void clean(DefaultMessageStore store, MessageStoreConfig config, int steps) throws Exception {
        config.setFileReservedTime(0);
        Object queues = Version.queueCleaner(store);
        for (int i = 0; i < steps; i++) {
            store.executeDeleteFilesManually();
            pass(store, "cleanFilesPeriodically");
            pass(queues, Version.CLEAN_QUEUES);
        }
    }

    private static void pass(Object cleaner, String name) throws Exception {
        Method pass = cleaner.getClass().getDeclaredMethod(name);
        pass.setAccessible(true);
        pass.invoke(cleaner);
    }
}
