import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.io.ObjectInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Measures Java's own streams for benchmarks/serde_java.py: for each line {@code read|write <file>} on standard input it
 * reads all events of the file, or writes the objects in them, once, and prints the seconds that this took.
 */
public final class Measure {
    private static Object kept;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 2);
            List<byte[]> events = load(Path.of(words[1]));
            System.out.println(words[0].equals("read") ? read(events) : write(events));
        }
    }

    private static List<byte[]> load(Path file) throws Exception {
        List<byte[]> events = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(Files.readAllBytes(file)))) {
            while (in.available() > 0) {
                events.add(in.readNBytes(in.readInt()));
            }
        }
        return events;
    }

    private static double read(List<byte[]> events) throws Exception {
        Object[] values = new Object[events.size()];
        long start = System.nanoTime();
        for (int i = 0; i < values.length; i++) {
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(events.get(i)))) {
                values[i] = in.readObject();
            }
        }
        kept = values;
        return (System.nanoTime() - start) / 1e9;
    }

    private static double write(List<byte[]> events) throws Exception {
        read(events);
        Object[] values = (Object[]) kept;
        byte[][] written = new byte[values.length][];
        long start = System.nanoTime();
        for (int i = 0; i < values.length; i++) {
            written[i] = Verify.write(values[i]);
        }
        kept = written;
        return (System.nanoTime() - start) / 1e9;
    }
}
