package sparkexporter;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * The local disk behind a slow line: {@code slow:///path} reads the file at
 * {@code /path} and waits {@code fs.slow.milliseconds.per.mebibyte} (default
 * 125, so 8 MiB/s a reader) for each MiB. Waiting costs no CPU, as with a
 * distant object store.
 */
public class SlowFileSystem extends RawLocalFileSystem {
    private double nanosPerByte;

    @Override
    public void initialize(URI uri, Configuration configuration) throws IOException {
        super.initialize(uri, configuration);
        nanosPerByte = configuration.getLong("fs.slow.milliseconds.per.mebibyte", 125) * 1e6 / (1 << 20);
    }

    @Override
    public URI getUri() {
        return URI.create("slow:///");
    }

    @Override
    public String getScheme() {
        return "slow";
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        return new FSDataInputStream(new SlowStream(super.open(path, bufferSize)));
    }

    private final class SlowStream extends FSInputStream {
        private final FSDataInputStream inner;
        private double owed;

        SlowStream(FSDataInputStream inner) {
            this.inner = inner;
        }

        @Override
        public int read() throws IOException {
            int value = inner.read();
            pay(value < 0 ? 0 : 1);
            return value;
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            int count = inner.read(buffer, offset, length);
            pay(Math.max(count, 0));
            return count;
        }

        /** Sleeps in steps of 10 ms or more: shorter sleeps are not exact. */
        private void pay(int bytes) throws IOException {
            owed += bytes * nanosPerByte;
            if (owed >= 10e6) {
                try {
                    Thread.sleep((long) (owed / 1e6));
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw new IOException("interrupted", interrupted);
                }
                owed = 0;
            }
        }

        @Override
        public void seek(long position) throws IOException {
            inner.seek(position);
        }

        @Override
        public long getPos() throws IOException {
            return inner.getPos();
        }

        @Override
        public boolean seekToNewSource(long target) throws IOException {
            return inner.seekToNewSource(target);
        }

        @Override
        public void close() throws IOException {
            inner.close();
        }
    }
}
