import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.TimeWindow;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * What an ordinary Java application does with event time, through the public Java client, for the interoperability tests.
 * All events are strings.
 *
 * <pre>
 *   {"do": "note", "writer": W, "events": [[KEY, EVENT]...], "time": T}    writes, flushes, notes the time; W stays open
 *   {"do": "commit", "writer": W, "events": [[KEY, EVENT]...], "time": T}  a transaction that is committed with the time
 *   {"do": "window", "at": CUT, "low": T or null, "high": T or null}
 *       the time window of a reader at the cut, as soon as it is this one, or when it has not become so in 20 s
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class TimePeer extends JsonPeer {
    private static final long PATIENCE_MS = 20_000;
    private static final Map<String, EventStreamWriter<String>> WRITERS = new HashMap<>();
    private static final Map<String, TransactionalEventStreamWriter<String>> TRANSACTIONAL = new HashMap<>();

    private TimePeer() {
    }

    public static void main(String[] args) throws IOException {
        new TimePeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "note" -> note(request);
            case "commit" -> commit(request);
            case "window" -> window(request);
            default -> throw unknown(request);
        };
    }

    private static Object note(JsonObject request) throws Exception {
        // Not closed: the factory's threads are daemons.
        EventStreamWriter<String> writer = WRITERS.computeIfAbsent(text(request, "stream") + text(request, "writer"),
                name -> factory(request).createEventWriter(text(request, "writer"), text(request, "stream"),
                        new UTF8StringSerializer(), EventWriterConfig.builder().build()));
        writeAll(request, writer::writeEvent);
        writer.flush();
        writer.noteTime(request.get("time").getAsLong());
        return null;
    }

    private static Object commit(JsonObject request) throws Exception {
        TransactionalEventStreamWriter<String> writer = TRANSACTIONAL.computeIfAbsent(
                text(request, "stream") + text(request, "writer"),
                name -> factory(request).createTransactionalEventWriter(text(request, "writer"), text(request, "stream"),
                        new UTF8StringSerializer(), EventWriterConfig.builder().transactionTimeoutTime(60_000).build()));
        Transaction<String> transaction = writer.beginTxn();
        writeAll(request, transaction::writeEvent);
        transaction.commit(request.get("time").getAsLong());
        return null;
    }

    private static List<Long> window(JsonObject request) throws Exception {
        String scope = text(request, "scope");
        String name = "peer" + UUID.randomUUID().toString().replace("-", "");
        Stream stream = Stream.of(scope, text(request, "stream"));
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(scope, config(request))) {
            manager.createReaderGroup(name, ReaderGroupConfig.builder()
                    .stream(stream, StreamCut.from(text(request, "at"))).disableAutomaticCheckpoints().build());
            try (EventStreamClientFactory factory = factory(request);
                 EventStreamReader<String> reader = factory.createReader("reader", name, new UTF8StringSerializer(),
                         ReaderConfig.builder().build())) {
                return await(reader, stream, request);
            }
        }
    }

    private static List<Long> await(EventStreamReader<String> reader, Stream stream, JsonObject request) throws Exception {
        List<Long> wanted = Arrays.asList(number(request, "low"), number(request, "high"));
        // The first look for an event takes the segments and tells the position, from which the window follows.
        reader.readNextEvent(1);
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            TimeWindow window = reader.getCurrentTimeWindow(stream);
            List<Long> found = Arrays.asList(window.getLowerTimeBound(), window.getUpperTimeBound());
            if (found.equals(wanted) || System.currentTimeMillis() > end) {
                return found;
            }
            Thread.sleep(20);
        }
    }

    private static Long number(JsonObject request, String name) {
        JsonElement value = request.get(name);
        return value == null || value.isJsonNull() ? null : value.getAsLong();
    }
}
