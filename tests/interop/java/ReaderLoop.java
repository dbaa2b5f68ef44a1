import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.Position;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * A Java application that reads in a reader group until it is told otherwise, and notes what it is given: to be killed
 * and held up. The controller is its argument; told on standard input, whose end ends it:
 *
 * <pre>
 *   join SCOPE GROUP READER FILE    come into the group, read, and note in the file
 *   leave                           close the reader
 * </pre>
 *
 * A note is a line of fields with tabs between them, written before the next read: a kind, the milliseconds of the
 * time, and what belongs to it.
 *
 * <pre>
 *   joined                          the reader is in the group
 *   event SEGMENT OFFSET EVENT
 *   checkpoint NAME
 *   position HEX                    every now and then, and after the call that ends a checkpoint
 *   left                            the reader was closed
 *   out ERROR                       reading has failed: the reader is closed
 * </pre>
 */
public final class ReaderLoop {
    private static final long POSITION_MILLIS = 250;
    private static final long READ_MILLIS = 200;
    private static final String END = "";

    private final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private final ClientConfig config;
    private OutputStream notes;

    private ReaderLoop(String controller) {
        config = ClientConfig.builder().controllerURI(URI.create(controller)).build();
    }

    public static void main(String[] args) throws Exception {
        ReaderLoop loop = new ReaderLoop(args[0]);
        Thread listener = new Thread(loop::listen);
        listener.setDaemon(true);
        listener.start();
        loop.run();
        System.exit(0);
    }

    private void listen() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                commands.add(line);
            }
        } catch (IOException e) {
            e.printStackTrace();
        }
        commands.add(END);
    }

    private void run() throws Exception {
        for (String command = commands.take(); !command.equals(END); command = commands.take()) {
            String[] words = command.split(" ");
            if (!words[0].equals("join")) { // it is out already
                continue;
            }
            try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(words[1], config);
                    OutputStream file = new FileOutputStream(words[4], true)) {
                notes = file;
                try {
                    read(factory.createReader(words[3], words[2], new UTF8StringSerializer(),
                            ReaderConfig.builder().build()));
                } catch (Exception e) {
                    note("out", e.getClass().getSimpleName());
                    e.printStackTrace();
                }
            }
        }
    }

    private void read(EventStreamReader<String> reader) throws IOException {
        try (reader) {
            note("joined", "");
            boolean after = false; // a checkpoint: the call that ends it may have released segments
            long next = 0;
            while (commands.isEmpty()) {
                EventRead<String> event = reader.readNextEvent(READ_MILLIS);
                if (event.isCheckpoint()) {
                    note("checkpoint", event.getCheckpointName());
                } else if (event.getEvent() != null) {
                    String pointer = event.getEventPointer().toString(); // SEGMENT:OFFSET-LENGTH
                    int colon = pointer.lastIndexOf(':');
                    note("event", pointer.substring(0, colon) + "\t"
                            + pointer.substring(colon + 1, pointer.lastIndexOf('-')) + "\t" + event.getEvent());
                }
                long now = System.currentTimeMillis();
                if (after || now >= next) {
                    note("position", hex(event.getPosition()));
                    next = now + POSITION_MILLIS;
                }
                after = event.isCheckpoint();
            }
        }
        note("left", "");
    }

    private static String hex(Position position) {
        ByteBuffer buffer = position.toBytes();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private void note(String kind, String more) throws IOException {
        notes.write((kind + "\t" + System.currentTimeMillis() + "\t" + more + "\n").getBytes(StandardCharsets.UTF_8));
    }
}
