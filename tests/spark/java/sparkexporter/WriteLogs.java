package sparkexporter;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.deploy.history.EventLogFileWriter;
import org.apache.spark.deploy.history.RollingEventLogFilesWriter;
import scala.Option;

/**
 * Writes the lines of an event log again, through Spark's own writers: as if
 * the application had run with another codec, another layout or another
 * directory, with the flushes that Spark makes.
 *
 * <pre>WriteLogs [--together] LINES DIRECTORY SPEC...</pre>
 *
 * LINES is a plain file. A SPEC is {@code CODEC-LAYOUT} or
 * {@code CODEC-LAYOUT-inprogress}: codec none, zstd, lz4, snappy or lzf; layout
 * single, rolling (four files) or rolling and a number of files. Its log lands in
 * DIRECTORY/SPEC, where DIRECTORY is any path that Hadoop can write; with
 * --together in DIRECTORY itself, where the last digits of the application's id
 * count the SPECs from 0 on. Prints SPEC, a tab and where the log is, line by line.
 *
 * An application in progress is one whose driver is killed: its log is never
 * closed, and what lies in buffers is lost.
 */
public final class WriteLogs {
    private static final Pattern EVENT = Pattern.compile("^\\{\"Event\":\"([^\"]*)\"");
    private static final Pattern APPLICATION = Pattern.compile("\"App ID\":\"([^\"]*)\"");
    private static final Pattern ATTEMPT = Pattern.compile("\"App Attempt ID\":\"([^\"]*)\"");

    /** What EventLoggingListener writes without flushing; it flushes all others. */
    private static final Set<String> NOT_FLUSHED =
            Set.of(
                    "SparkListenerStageSubmitted",
                    "SparkListenerTaskStart",
                    "SparkListenerTaskGettingResult",
                    "SparkListenerTaskEnd",
                    "SparkListenerEnvironmentUpdate",
                    "SparkListenerStageExecutorMetrics",
                    "SparkListenerExecutorMetricsUpdate");

    private final List<String> lines;
    private final String application;
    private final Option<String> attempt;

    private WriteLogs(List<String> lines) {
        this.lines = lines;
        String start =
                lines.stream()
                        .filter(line -> event(line).equals("SparkListenerApplicationStart"))
                        .findFirst()
                        .orElseThrow(() -> new IllegalArgumentException("no ApplicationStart in it"));
        application = first(APPLICATION, start);
        attempt = Option.apply(first(ATTEMPT, start));
    }

    public static void main(String[] arguments) throws IOException {
        List<String> words = new ArrayList<>(List.of(arguments));
        boolean together = words.remove("--together");
        if (words.size() < 3) {
            System.err.println("usage: WriteLogs [--together] LINES DIRECTORY CODEC-LAYOUT[-inprogress]...");
            System.exit(2);
        }
        WriteLogs logs = new WriteLogs(Files.readAllLines(Paths.get(words.get(0)), StandardCharsets.UTF_8));
        List<String> specs = words.subList(2, words.size());
        for (int i = 0; i < specs.size(); i++) {
            String path =
                    together
                            ? logs.numbered(i).write(new Path(words.get(1)), specs.get(i))
                            : logs.write(new Path(words.get(1), specs.get(i)), specs.get(i));
            System.out.println(specs.get(i) + "\t" + path);
        }
        System.out.flush();
        // No shutdown hook may close what a killed driver would leave open.
        Runtime.getRuntime().halt(0);
    }

    /** The same run under another id of the same length. */
    private WriteLogs numbered(int number) {
        String id = application.replaceFirst("[0-9]{4}$", String.format("%04d", number));
        return new WriteLogs(
                lines.stream().map(line -> line.replace(application, id)).collect(Collectors.toList()));
    }

    private String write(Path base, String spec) throws IOException {
        String[] words = spec.split("-");
        boolean rolling = words[1].startsWith("rolling");
        if (!rolling && !words[1].equals("single")) {
            throw new IllegalArgumentException("unknown layout in " + spec);
        }
        SparkConf conf =
                new SparkConf()
                        .set("spark.eventLog.compress", Boolean.toString(!words[0].equals("none")))
                        .set("spark.eventLog.rolling.enabled", Boolean.toString(rolling))
                        .set("spark.eventLog.overwrite", "true");
        if (!words[0].equals("none")) {
            conf.set("spark.eventLog.compression.codec", words[0]);
        }
        Configuration hadoop = SparkHadoopUtil.get().newConfiguration(conf);
        base.getFileSystem(hadoop).mkdirs(base);
        URI uri = base.getFileSystem(hadoop).makeQualified(base).toUri();
        EventLogFileWriter writer =
                EventLogFileWriter.apply(application, attempt, uri, conf, hadoop);
        writer.start();
        String number = words[1].replaceFirst("^[a-z]+", "");
        int files = number.isEmpty() ? 4 : Integer.parseInt(number);
        int share = (lines.size() + files - 1) / files;
        for (int i = 0; i < lines.size(); i++) {
            // By the number of lines and not by spark.eventLog.rolling.maxFileSize,
            // whose least is 10 MiB.
            if (rolling && i > 0 && i % share == 0) {
                ((RollingEventLogFilesWriter) writer).rollEventLogFile();
            }
            writer.writeEvent(lines.get(i), !NOT_FLUSHED.contains(event(lines.get(i))));
        }
        if (words.length < 3) {
            writer.stop();
        } else if (!words[2].equals("inprogress")) {
            throw new IllegalArgumentException("unknown state in " + spec);
        }
        return writer.logPath();
    }

    private static String event(String line) {
        String name = first(EVENT, line);
        return name == null ? "" : name;
    }

    private static String first(Pattern pattern, String line) {
        Matcher matcher = pattern.matcher(line);
        return matcher.find() ? matcher.group(1) : null;
    }
}
