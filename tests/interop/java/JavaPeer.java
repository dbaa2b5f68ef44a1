import io.pravega.client.BatchClientFactory;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamInfo;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteArraySerializer;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * What an ordinary Java application does with Pravega, through the public Java client, for the interoperability tests.
 *
 * <pre>
 *   write CONTROLLER SCOPE STREAM FILE bytes|utf8    events of FILE, in order; returns when all are acknowledged
 *   read  CONTROLLER SCOPE STREAM FILE [START [END]] every event between two stream cuts, segment by segment
 *   group CONTROLLER SCOPE STREAM FILE COUNT         COUNT events through a reader group, in the order of arrival
 *   cuts  CONTROLLER SCOPE STREAM                    two lines: the head's and the tail's stream cut
 *   parse                                            a cut on each line of standard input, "text ..." or "bytes HEX"
 * </pre>
 *
 * An event to write is: i32 n (-1: no routing key), n UTF-16 code units, i32 length, payload. An event that was read is: i64
 * segment id, i64 offset (-1: not told), i32 length, payload. A stream cut is printed as its stream, its positions by segment
 * id, its text and its bytes in hexadecimal, with a space between them. FILE ends without a mark. All numbers are big-endian.
 */
public final class JavaPeer {
    private static final long SILENCE_MS = 20_000;
    private static final int END = Integer.MIN_VALUE;

    private JavaPeer() {
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "write" -> write(args);
            case "read" -> read(args);
            case "group" -> group(args);
            case "cuts" -> cuts(args);
            case "parse" -> parse();
            default -> throw new IllegalArgumentException("no such command: " + args[0]);
        }
        System.exit(0); // the client's own threads would keep this process for some seconds more
    }

    private static ClientConfig config(String[] args) {
        return ClientConfig.builder().controllerURI(URI.create(args[1])).build();
    }

    private static void write(String[] args) throws Exception {
        if (args[5].equals("utf8")) {
            writeAs(args, new UTF8StringSerializer(), payload -> new String(payload, StandardCharsets.UTF_8));
        } else {
            writeAs(args, new ByteArraySerializer(), payload -> payload);
        }
    }

    private static <T> void writeAs(String[] args, Serializer<T> serializer, Function<byte[], T> value)
            throws Exception {
        CompletableFuture<Void> last = CompletableFuture.completedFuture(null);
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(args[4])));
             EventStreamClientFactory factory = EventStreamClientFactory.withScope(args[2], config(args));
             EventStreamWriter<T> writer =
                     factory.createEventWriter(args[3], serializer, EventWriterConfig.builder().build())) {
            for (int units = nextLength(in); units != END; units = nextLength(in)) {
                String key = units < 0 ? null : readKey(in, units);
                T event = value.apply(in.readNBytes(in.readInt()));
                last = key == null ? writer.writeEvent(event) : writer.writeEvent(key, event);
            }
            writer.flush();
            last.get();
        }
    }

    private static int nextLength(DataInputStream in) throws IOException {
        try {
            return in.readInt();
        } catch (EOFException end) {
            return END;
        }
    }

    private static String readKey(DataInputStream in, int units) throws IOException {
        char[] key = new char[units];
        for (int i = 0; i < units; i++) {
            key[i] = in.readChar(); // not through a charset: it would replace lone surrogates
        }
        return new String(key);
    }

    private static void read(String[] args) throws Exception {
        StreamCut start = args.length > 5 ? StreamCut.from(args[5]) : StreamCut.UNBOUNDED;
        StreamCut end = args.length > 6 ? StreamCut.from(args[6]) : StreamCut.UNBOUNDED;
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(args[4])));
             BatchClientFactory factory = BatchClientFactory.withScope(args[2], config(args))) {
            Iterator<SegmentRange> ranges = factory.getSegments(Stream.of(args[2], args[3]), start, end).getIterator();
            while (ranges.hasNext()) {
                SegmentRange range = ranges.next();
                long id = range.getSegmentId();
                try (SegmentIterator<byte[]> events = factory.readSegment(range, new ByteArraySerializer())) {
                    while (events.hasNext()) {
                        long offset = events.getOffset();
                        put(out, id, offset, events.next());
                    }
                }
            }
        }
    }

    private static void put(DataOutputStream out, long segment, long offset, byte[] payload) throws IOException {
        out.writeLong(segment);
        out.writeLong(offset);
        out.writeInt(payload.length);
        out.write(payload);
    }

    private static void group(String[] args) throws Exception {
        String name = "peer" + UUID.randomUUID().toString().replace("-", "");
        long wanted = Long.parseLong(args[5]);
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(args[2], config(args))) {
            manager.createReaderGroup(name, ReaderGroupConfig.builder().stream(Stream.of(args[2], args[3]))
                    .disableAutomaticCheckpoints().build());
            try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(args[4])));
                 EventStreamClientFactory factory = EventStreamClientFactory.withScope(args[2], config(args));
                 EventStreamReader<byte[]> reader = factory.createReader("reader", name, new ByteArraySerializer(),
                         ReaderConfig.builder().build())) {
                long patience = System.currentTimeMillis() + SILENCE_MS;
                for (long got = 0; got < wanted && System.currentTimeMillis() < patience; ) {
                    EventRead<byte[]> event = reader.readNextEvent(500);
                    if (event.getEvent() == null) {
                        continue;
                    }
                    putPointed(out, event);
                    patience = System.currentTimeMillis() + SILENCE_MS;
                    got++;
                }
            }
            manager.deleteReaderGroup(name);
        }
    }

    private static void putPointed(DataOutputStream out, EventRead<byte[]> event) throws IOException {
        String pointer = event.getEventPointer().toString(); // "SEGMENT:OFFSET-LENGTH": the getters are not public
        int colon = pointer.lastIndexOf(':');
        long segment = Segment.fromScopedName(pointer.substring(0, colon)).getSegmentId();
        long offset = Long.parseLong(pointer.substring(colon + 1, pointer.lastIndexOf('-')));
        put(out, segment, offset, event.getEvent());
    }

    private static void cuts(String[] args) throws Exception {
        try (StreamManager manager = StreamManager.create(config(args))) {
            StreamInfo info = manager.fetchStreamInfo(args[2], args[3]).get();
            print(System.out, info.getHeadStreamCut());
            print(System.out, info.getTailStreamCut());
        }
    }

    private static void parse() throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String value = line.substring(line.indexOf(' ') + 1);
            print(System.out, line.startsWith("text ") ? StreamCut.from(value) : StreamCut.fromBytes(unhex(value)));
        }
    }

    private static void print(PrintStream out, StreamCut cut) {
        Map<Long, Long> positions = new TreeMap<>();
        for (Map.Entry<Segment, Long> entry : cut.asImpl().getPositions().entrySet()) {
            positions.put(entry.getKey().getSegmentId(), entry.getValue());
        }
        String normal = positions.toString().replace(" ", "").replace("=", ":");
        out.println(cut.asImpl().getStream().getScopedName() + " " + normal.substring(1, normal.length() - 1) + " "
                + cut.asText() + " " + hex(cut.toBytes()));
    }

    private static ByteBuffer unhex(String text) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(text));
    }

    private static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
