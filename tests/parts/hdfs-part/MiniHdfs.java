import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A real HDFS on free ports of loopback, in DIRECTORY, for as long as somebody
 * holds its standard input. Prints hdfs=..., webhdfs=... and ready=true, then
 * does what it reads and answers done=LINE:
 *
 * <pre>
 *   put LOCAL REMOTE     copies a file or a folder
 *   write LOCAL REMOTE   appends a file and leaves it open, flushed as Spark does
 *   rename FROM TO
 *   chmod OCTAL PATH
 *   delete PATH
 * </pre>
 */
public final class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(arguments[0]).getAbsolutePath());
        // No test needs more than a few MiB; a full disk of the machine is no matter.
        conf.setLong("dfs.namenode.resource.du.reserved", 0);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("hdfs=" + cluster.getURI());
        System.out.println("webhdfs=" + cluster.getHttpUri(0));
        System.out.println("ready=true");
        FileSystem files = cluster.getFileSystem();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            obey(files, line.split(" "));
            System.out.println("done=" + line);
        }
        // Orderly shutdown takes seconds and saves nothing here.
        Runtime.getRuntime().halt(0);
    }

    private static final Map<String, FSDataOutputStream> open = new HashMap<>();

    private static void obey(FileSystem files, String[] words) throws Exception {
        switch (words[0]) {
            case "put":
                files.mkdirs(new Path(words[2]).getParent());
                files.copyFromLocalFile(new Path("file:" + words[1]), new Path(words[2]));
                break;
            case "write":
                FSDataOutputStream out = open.get(words[2]);
                if (out == null) {
                    out = files.create(new Path(words[2]));
                    open.put(words[2], out);
                }
                Files.copy(Paths.get(words[1]), out);
                out.hflush();
                break;
            case "rename":
                files.rename(new Path(words[1]), new Path(words[2]));
                break;
            case "chmod":
                files.setPermission(new Path(words[2]), new FsPermission(words[1]));
                break;
            case "delete":
                files.delete(new Path(words[1]), true);
                break;
            default:
                throw new IllegalArgumentException("not understood: " + String.join(" ", words));
        }
    }
}
