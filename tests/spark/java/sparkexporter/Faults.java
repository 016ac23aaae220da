package sparkexporter;

import java.lang.reflect.Constructor;
import java.util.ArrayDeque;
import java.util.Iterator;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Faults that no query can ask for, most called once a row from SQL:
 * {@code java_method('sparkexporter.Faults', 'work', 1000)}. They happen inside
 * the executor's JVM, so no Python worker adds its own noise to the run.
 */
public final class Faults {
    private static final ArrayDeque<Object> LIVE = new ArrayDeque<>();

    private Faults() {}

    /** Burns CPU: about one nanosecond a round on a current machine. */
    public static long work(long rounds) {
        long state = 0x9E3779B97F4A7C15L ^ rounds;
        for (long round = 0; round < rounds; round++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }

    /** As {@link #work}, but {@code factor} times as much on {@code host}. */
    public static long workOnHost(long rounds, String host, int factor) {
        boolean slow = SparkEnv.get().blockManager().blockManagerId().host().equals(host);
        return work(slow ? rounds * factor : rounds);
    }

    /** Waits without using the CPU. */
    public static long sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RuntimeException("interrupted", interrupted);
        }
        return milliseconds;
    }

    /**
     * Puts a record into a cache of the newest {@code size} records of this
     * executor: small objects that live long enough to be promoted and die
     * old, which is what makes full collections.
     */
    public static long cache(long key, int size) {
        synchronized (LIVE) {
            LIVE.addLast(new Object[] {key, Long.toString(key), new byte[64], new long[4]});
            while (LIVE.size() > size) {
                LIVE.removeFirst();
            }
            return LIVE.size();
        }
    }

    /**
     * The same rows, but tasks named in {@code plan} fail when they have read all
     * of theirs. The plan is a comma-separated list of partition:attempts:kind;
     * kind "memory" is the error of Spark's memory manager.
     */
    public static Dataset<Row> failAtEnd(Dataset<Row> frame, String plan) {
        MapPartitionsFunction<Row, Row> function = rows -> new FailingRows(rows, plan);
        return frame.mapPartitions(function, frame.encoder());
    }

    private static final class FailingRows implements Iterator<Row> {
        private final Iterator<Row> rows;
        private final String plan;

        FailingRows(Iterator<Row> rows, String plan) {
            this.rows = rows;
            this.plan = plan;
        }

        @Override
        public boolean hasNext() {
            if (rows.hasNext()) {
                return true;
            }
            for (String entry : plan.isEmpty() ? new String[0] : plan.split(",")) {
                String[] words = entry.split(":");
                if (TaskContext.getPartitionId() == Integer.parseInt(words[0])
                        && TaskContext.get().attemptNumber() < Integer.parseInt(words[1])) {
                    if (words[2].equals("memory")) {
                        throw sparkOutOfMemory();
                    }
                    throw new IllegalStateException("record rejected: amount is not a number");
                }
            }
            return false;
        }

        @Override
        public Row next() {
            return rows.next();
        }
    }

    /** 1 in the first attempt of a task, 0 in its retries. */
    public static int firstAttempt() {
        return TaskContext.get().attemptNumber() == 0 ? 1 : 0;
    }

    /** The error of Spark's own memory manager, which fails a task and not its executor. */
    private static Error sparkOutOfMemory() {
        try {
            return newSparkOutOfMemory();
        } catch (ReflectiveOperationException missing) {
            throw new IllegalStateException(missing);
        }
    }

    /** Its constructors differ between releases. */
    private static Error newSparkOutOfMemory() throws ReflectiveOperationException {
        Class<?> type = Class.forName("org.apache.spark.memory.SparkOutOfMemoryError");
        for (Constructor<?> constructor : type.getConstructors()) {
            Class<?>[] parameters = constructor.getParameterTypes();
            if (parameters.length == 1 && parameters[0] == OutOfMemoryError.class) {
                return (Error) constructor.newInstance(
                        new OutOfMemoryError("Unable to acquire 65536 bytes of memory, got 0"));
            }
        }
        return (Error) type
                .getConstructor(String.class, java.util.Map.class)
                .newInstance(
                        "UNABLE_TO_ACQUIRE_MEMORY",
                        new java.util.HashMap<>(java.util.Map.of("requestedBytes", "65536", "receivedBytes", "0")));
    }
}
