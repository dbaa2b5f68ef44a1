import com.example.taxi.Trips;
import com.google.gson.JsonObject;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.TimeWindow;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.JavaSerializer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * An application of the public Java client: writes trips, and reads what anybody has written.
 *
 * <pre>
 *   {"do": "write", "first": A, "last": B, "mode": "plain", "transaction" or "aborted", "time": T or null}
 *       trips A to B; the stream's writer stays open, as those of applications do, and notes the time
 *   {"do": "close"}                                the writers
 *   {"do": "read", "count": N, "timed": BOOLEAN}   N events of a reader group, and what comes within a second after them
 *   {"do": "register"}                             the format's group, schema and codec, by making a writer's serializer
 *   {"do": "sample"}                               a trip in Java's own format, in hex digits
 * </pre>
 *
 * Asked as JsonPeer says; a request has the parts of a Format beside those of JsonPeer.
 */
public final class ExchangePeer extends JsonPeer {
    private static final long SILENCE_MS = 30_000;
    private static final Map<String, EventStreamWriter<Object>> WRITERS = new HashMap<>();
    private static final Map<String, TransactionalEventStreamWriter<Object>> TRANSACTIONAL = new HashMap<>();

    private ExchangePeer() {
    }

    private record Found(Object value, Long low, Long high) {
    }

    public static void main(String[] args) throws IOException {
        new ExchangePeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "write" -> write(request);
            case "close" -> close();
            case "read" -> read(request);
            case "sample" -> sample();
            case "register" -> Trips.serializer(format(request), true).serialize(Trips.value(format(request), 0)).remaining();
            default -> throw unknown(request);
        };
    }

    private static String sample() {
        ByteBuffer event = new JavaSerializer<com.example.taxi.Trip>().serialize(com.example.taxi.Trip.of(3));
        byte[] data = new byte[event.remaining()];
        event.get(data);
        return HexFormat.of().formatHex(data);
    }

    private static Trips.Format format(JsonObject request) {
        return new Trips.Format(text(request, "format"), text(request, "registry"), text(request, "scope"),
                text(request, "group"), text(request, "codec"));
    }

    private static String key(long number) {
        return "k" + number % 7;
    }

    private static Object write(JsonObject request) throws Exception {
        Trips.Format format = format(request);
        String stream = text(request, "stream");
        long first = request.get("first").getAsLong();
        long last = request.get("last").getAsLong();
        Long time = text(request, "time") == null ? null : (Long) request.get("time").getAsLong();
        if (text(request, "mode").equals("plain")) {
            EventStreamWriter<Object> writer = WRITERS.computeIfAbsent(stream, name -> factory(request)
                    .createEventWriter(name, Trips.serializer(format, true), EventWriterConfig.builder().build()));
            for (long number = first; number < last; number++) {
                writer.writeEvent(key(number), Trips.value(format, number));
            }
            writer.flush();
            if (time != null) {
                writer.noteTime(time);
            }
            return null;
        }
        TransactionalEventStreamWriter<Object> writer = TRANSACTIONAL.computeIfAbsent(stream, name -> factory(request)
                .createTransactionalEventWriter("exchange", name, Trips.serializer(format, true),
                        EventWriterConfig.builder().transactionTimeoutTime(60_000).build()));
        Transaction<Object> transaction = writer.beginTxn();
        for (long number = first; number < last; number++) {
            transaction.writeEvent(key(number), Trips.value(format, number));
        }
        if (text(request, "mode").equals("aborted")) {
            transaction.abort();
            return null;
        }
        transaction.commit();
        Transaction.Status status = transaction.checkStatus();
        for (; status == Transaction.Status.COMMITTING; status = transaction.checkStatus()) {
            Thread.sleep(10);
        }
        if (status != Transaction.Status.COMMITTED) {
            throw new IllegalStateException("the transaction is " + status);
        }
        return null;
    }

    private static Object close() {
        WRITERS.values().forEach(EventStreamWriter::close);
        WRITERS.clear();
        TRANSACTIONAL.values().forEach(TransactionalEventStreamWriter::close);
        TRANSACTIONAL.clear();
        return null;
    }

    private static Object read(JsonObject request) throws Exception {
        String scope = text(request, "scope");
        Stream stream = Stream.of(scope, text(request, "stream"));
        String name = "exchange" + UUID.randomUUID().toString().replace("-", "");
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(scope, config(request))) {
            // A reader goes on to the successors of a sealed segment at its next checkpoint, and not without one.
            manager.createReaderGroup(name, ReaderGroupConfig.builder().stream(stream)
                    .automaticCheckpointIntervalMillis(1000).groupRefreshTimeMillis(500).build());
            try (EventStreamClientFactory factory = factory(request);
                 EventStreamReader<Object> reader = factory.createReader("reader", name,
                         Trips.serializer(format(request), false), ReaderConfig.builder().build())) {
                return drain(reader, stream, request.get("count").getAsLong(), request.get("timed").getAsBoolean());
            } finally {
                manager.deleteReaderGroup(name);
            }
        }
    }

    private static List<Found> drain(EventStreamReader<Object> reader, Stream stream, long count, boolean timed) {
        List<Found> found = new ArrayList<>();
        long end = System.currentTimeMillis() + SILENCE_MS;
        while (System.currentTimeMillis() < end) {
            EventRead<Object> event = reader.readNextEvent(100);
            if (event.getEvent() == null) {
                continue;
            }
            TimeWindow window = timed ? reader.getCurrentTimeWindow(stream) : new TimeWindow(null, null);
            found.add(new Found(Trips.plain(event.getEvent()), window.getLowerTimeBound(), window.getUpperTimeBound()));
            end = System.currentTimeMillis() + (found.size() < count ? SILENCE_MS : 1000);
        }
        return found;
    }
}
