import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.BatchClientFactory;
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
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * What an ordinary Java application does with Pravega, through the public Java client, for the interoperability tests.
 *
 * <pre>
 *   {"do": "write", "file": F, "serializer": "bytes" or "utf8"}  writes the events of a file, in order, until all are durable
 *   {"do": "read", "file": F, "start": CUT, "end": CUT}          every event between two stream cuts, segment by segment
 *   {"do": "group", "file": F, "count": N}                       N events through a reader group, in the order of arrival
 *   {"do": "cuts"}                                               the head's and the tail's stream cut
 *   {"do": "parse", "text": [CUT...], "bytes": [HEX...]}         stream cuts as Java understands them
 * </pre>
 *
 * Asked as JsonPeer says; the answers are lists of cuts.
 *
 * An event to write is: i32 n (-1: no routing key), n UTF-16 code units, i32 length, payload. An event that was read is: i64
 * segment id, i64 offset, i32 length, payload. A file ends without a mark. All numbers are big-endian.
 */
public final class JavaPeer extends JsonPeer {
    private static final long SILENCE_MS = 20_000;
    private static final int END = Integer.MIN_VALUE;

    private JavaPeer() {
    }

    private record Cut(String stream, Map<Long, Long> positions, String text, String bytes) {
    }

    public static void main(String[] args) throws IOException {
        new JavaPeer().serve();
    }

    @Override
    List<Cut> answer(JsonObject request) throws Exception {
        List<Cut> cuts = new ArrayList<>();
        switch (text(request, "do")) {
            case "write" -> write(request);
            case "read" -> read(request);
            case "group" -> group(request);
            case "cuts" -> cuts(request, cuts);
            case "parse" -> parse(request, cuts);
            default -> throw unknown(request);
        }
        return cuts;
    }

    private static Stream stream(JsonObject request) {
        return Stream.of(text(request, "scope"), text(request, "stream"));
    }

    private static DataOutputStream output(JsonObject request) throws IOException {
        return new DataOutputStream(new BufferedOutputStream(new FileOutputStream(text(request, "file"))));
    }

    private static void write(JsonObject request) throws Exception {
        if (text(request, "serializer").equals("utf8")) {
            writeAs(request, new UTF8StringSerializer(), payload -> new String(payload, StandardCharsets.UTF_8));
        } else {
            writeAs(request, new ByteArraySerializer(), payload -> payload);
        }
    }

    private static <T> void writeAs(JsonObject request, Serializer<T> serializer, Function<byte[], T> value)
            throws Exception {
        CompletableFuture<Void> last = CompletableFuture.completedFuture(null);
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(text(request, "file"))));
             EventStreamClientFactory factory = factory(request);
             EventStreamWriter<T> writer = factory.createEventWriter(text(request, "stream"), serializer,
                     EventWriterConfig.builder().build())) {
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

    private static void read(JsonObject request) throws Exception {
        StreamCut start = StreamCut.from(text(request, "start"));
        StreamCut end = StreamCut.from(text(request, "end"));
        try (DataOutputStream out = output(request);
             BatchClientFactory factory = BatchClientFactory.withScope(text(request, "scope"), config(request))) {
            Iterator<SegmentRange> ranges = factory.getSegments(stream(request), start, end).getIterator();
            while (ranges.hasNext()) {
                SegmentRange range = ranges.next();
                try (SegmentIterator<byte[]> events = factory.readSegment(range, new ByteArraySerializer())) {
                    while (events.hasNext()) {
                        long offset = events.getOffset();
                        put(out, range.getSegmentId(), offset, events.next());
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

    private static void group(JsonObject request) throws Exception {
        String scope = text(request, "scope");
        String name = "peer" + UUID.randomUUID().toString().replace("-", "");
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(scope, config(request))) {
            // A reader goes on to the successors of a sealed segment at its next checkpoint, and not without one.
            manager.createReaderGroup(name, ReaderGroupConfig.builder().stream(stream(request))
                    .automaticCheckpointIntervalMillis(1000).build());
            try (DataOutputStream out = output(request);
                 EventStreamClientFactory factory = factory(request);
                 EventStreamReader<byte[]> reader = factory.createReader("reader", name, new ByteArraySerializer(),
                         ReaderConfig.builder().build())) {
                drain(reader, request.get("count").getAsLong(), out);
            }
            manager.deleteReaderGroup(name);
        }
    }

    private static void drain(EventStreamReader<byte[]> reader, long wanted, DataOutputStream out) throws IOException {
        long patience = System.currentTimeMillis() + SILENCE_MS;
        for (long got = 0; got < wanted && System.currentTimeMillis() < patience; ) {
            EventRead<byte[]> event = reader.readNextEvent(500);
            if (event.getEvent() != null) {
                putPointed(out, event);
                patience = System.currentTimeMillis() + SILENCE_MS;
                got++;
            }
        }
    }

    private static void putPointed(DataOutputStream out, EventRead<byte[]> event) throws IOException {
        String pointer = event.getEventPointer().toString(); // "SEGMENT:OFFSET-LENGTH": the getters are not public
        int colon = pointer.lastIndexOf(':');
        long segment = Segment.fromScopedName(pointer.substring(0, colon)).getSegmentId();
        long offset = Long.parseLong(pointer.substring(colon + 1, pointer.lastIndexOf('-')));
        put(out, segment, offset, event.getEvent());
    }

    private static void cuts(JsonObject request, List<Cut> cuts) throws Exception {
        try (StreamManager manager = StreamManager.create(config(request))) {
            StreamInfo info = manager.fetchStreamInfo(text(request, "scope"), text(request, "stream")).get();
            cuts.add(described(info.getHeadStreamCut()));
            cuts.add(described(info.getTailStreamCut()));
        }
    }

    private static void parse(JsonObject request, List<Cut> cuts) {
        for (JsonElement text : request.get("text").getAsJsonArray()) {
            cuts.add(described(StreamCut.from(text.getAsString())));
        }
        for (JsonElement hex : request.get("bytes").getAsJsonArray()) {
            cuts.add(described(StreamCut.fromBytes(ByteBuffer.wrap(HexFormat.of().parseHex(hex.getAsString())))));
        }
    }

    private static Cut described(StreamCut cut) {
        Map<Long, Long> positions = new TreeMap<>();
        cut.asImpl().getPositions().forEach((segment, offset) -> positions.put(segment.getSegmentId(), offset));
        ByteBuffer bytes = cut.toBytes();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return new Cut(cut.asImpl().getStream().getScopedName(), positions, cut.asText(), HexFormat.of().formatHex(copy));
    }
}
