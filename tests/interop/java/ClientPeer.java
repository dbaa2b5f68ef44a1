import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.segment.impl.NoSuchEventException;
import io.pravega.client.stream.EventPointer;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.client.tables.KeyValueTableConfiguration;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/**
 * Less common calls of the Java client, for the interoperability tests.
 *
 * <pre>
 *   {"do": "create", "tags": [TAG...]}  creates a stream of one segment
 *   {"do": "fill"}                      creates a scope with a stream, a reader group of it, and a key-value table
 *   {"do": "exists"}                    true if the scope exists
 *   {"do": "completed", "streams": [STREAM...]}  commits a transaction to each stream, and returns the number of completed
 *                                       transactions that listCompletedTransactions finds in each
 *   {"do": "tagged", "tag": TAG}        names of the streams of a scope with a tag
 *   {"do": "tags"}                      tags of a stream
 *   {"do": "point", "count": N}         [text, hex of the bytes, event] of the pointers of N events, through a reader group
 *   {"do": "write_all", "key": KEY, "sequences": [[EVENT...]...]}  writes sequences of events, each in one step
 *   {"do": "join", "id": ID, "events": [[KEY, EVENT]...]}  writes to an open transaction, with getTxn
 *   {"do": "fetch", "pointers": [HEX...]}  events at pointers in bytes; null for a missing event
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class ClientPeer extends JsonPeer {
    private ClientPeer() {
    }

    public static void main(String[] args) throws IOException {
        new ClientPeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "create", "tagged", "tags" -> manage(request);
            case "completed" -> completed(request);
            case "exists" -> exists(request);
            case "fill" -> fill(request);
            case "point" -> point(request);
            case "fetch" -> fetch(request);
            case "join" -> join(request);
            case "write_all" -> writeSequences(request);
            default -> throw unknown(request);
        };
    }

    private interface Reading<T> {
        T with(EventStreamReader<String> reader) throws Exception;
    }

    private static <T> T reading(JsonObject request, Reading<T> reading) throws Exception {
        String scope = text(request, "scope");
        String name = "peer" + UUID.randomUUID().toString().replace("-", "");
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(scope, config(request))) {
            manager.createReaderGroup(name, ReaderGroupConfig.builder()
                    .stream(Stream.of(scope, text(request, "stream"))).build());
            T result;
            try (EventStreamClientFactory factory = factory(request);
                 EventStreamReader<String> reader = factory.createReader("reader", name, new UTF8StringSerializer(),
                         ReaderConfig.builder().build())) {
                result = reading.with(reader);
            }
            manager.deleteReaderGroup(name);
            return result;
        }
    }

    private static List<List<String>> point(JsonObject request) throws Exception {
        int count = request.get("count").getAsInt();
        return reading(request, reader -> {
            List<List<String>> found = new ArrayList<>();
            while (found.size() < count) {
                EventRead<String> event = reader.readNextEvent(500);
                if (event.getEvent() != null) {
                    EventPointer pointer = event.getEventPointer();
                    found.add(List.of(pointer.toString(), hex(pointer.toBytes()), event.getEvent()));
                }
            }
            return found;
        });
    }

    private static List<String> fetch(JsonObject request) throws Exception {
        return reading(request, reader -> {
            List<String> found = new ArrayList<>();
            for (String pointer : texts(request, "pointers")) {
                try {
                    found.add(reader.fetchEvent(EventPointer.fromBytes(
                            ByteBuffer.wrap(HexFormat.of().parseHex(pointer)))));
                } catch (NoSuchEventException e) {
                    found.add(null);
                }
            }
            return found;
        });
    }

    private static int writeSequences(JsonObject request) throws Exception {
        List<CompletableFuture<Void>> written = new ArrayList<>();
        try (EventStreamClientFactory factory = factory(request);
             EventStreamWriter<String> writer = factory.createEventWriter(text(request, "stream"),
                     new UTF8StringSerializer(), EventWriterConfig.builder().build())) {
            for (JsonElement sequence : request.get("sequences").getAsJsonArray()) {
                List<String> events = new ArrayList<>();
                sequence.getAsJsonArray().forEach(event -> events.add(event.getAsString()));
                written.add(writer.writeEvents(text(request, "key"), events));
            }
            for (CompletableFuture<Void> each : written) {
                each.get();
            }
        }
        return written.size();
    }

    private static boolean join(JsonObject request) throws Exception {
        // Not closed: that would abort the transaction.
        Transaction<String> transaction = factory(request).createTransactionalEventWriter("java",
                text(request, "stream"), new UTF8StringSerializer(),
                EventWriterConfig.builder().transactionTimeoutTime(60_000).build())
                .getTxn(UUID.fromString(text(request, "id")));
        writeAll(request, transaction::writeEvent);
        transaction.flush();
        return true;
    }

    private static boolean exists(JsonObject request) {
        try (StreamManager manager = StreamManager.create(config(request))) {
            return manager.checkScopeExists(text(request, "scope"));
        }
    }

    private static boolean fill(JsonObject request) {
        String scope = text(request, "scope");
        String stream = text(request, "stream");
        try (StreamManager manager = StreamManager.create(config(request));
             ReaderGroupManager groups = ReaderGroupManager.withScope(scope, config(request));
             KeyValueTableManager tables = KeyValueTableManager.create(config(request))) {
            manager.createScope(scope);
            boolean created = manager.createStream(scope, stream, StreamConfiguration.builder()
                    .scalingPolicy(ScalingPolicy.fixed(2)).build());
            groups.createReaderGroup("group", ReaderGroupConfig.builder().stream(Stream.of(scope, stream))
                    .retentionType(ReaderGroupConfig.StreamDataRetention.AUTOMATIC_RELEASE_AT_LAST_CHECKPOINT).build());
            return created && tables.createKeyValueTable(scope, "table", KeyValueTableConfiguration.builder()
                    .partitionCount(1).primaryKeyLength(4).build());
        }
    }

    private static List<Integer> completed(JsonObject request) throws Exception {
        String scope = text(request, "scope");
        List<Integer> found = new ArrayList<>();
        try (EventStreamClientFactory factory = factory(request);
             StreamManager manager = StreamManager.create(config(request))) {
            for (String stream : texts(request, "streams")) {
                try (var writer = factory.createTransactionalEventWriter(stream, new UTF8StringSerializer(),
                        EventWriterConfig.builder().build())) {
                    Transaction<String> transaction = writer.beginTxn();
                    transaction.writeEvent("key", "event");
                    transaction.commit();
                    while (transaction.checkStatus() != Transaction.Status.COMMITTED) {
                        Thread.sleep(50);
                    }
                }
            }
            for (String stream : texts(request, "streams")) {
                found.add(manager.listCompletedTransactions(Stream.of(scope, stream)).size());
            }
        }
        return found;
    }

    private static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HexFormat.of().formatHex(copy);
    }

    private static Object manage(JsonObject request) {
        String scope = text(request, "scope");
        String stream = text(request, "stream");
        try (StreamManager manager = StreamManager.create(config(request))) {
            return switch (text(request, "do")) {
                case "create" -> manager.createStream(scope, stream, StreamConfiguration.builder()
                        .scalingPolicy(ScalingPolicy.fixed(1)).tags(texts(request, "tags")).build());
                case "tagged" -> {
                    List<String> names = new ArrayList<>();
                    for (var found = manager.listStreams(scope, text(request, "tag")); found.hasNext(); ) {
                        Stream each = found.next();
                        names.add(each.getStreamName());
                    }
                    yield names;
                }
                default -> manager.getStreamTags(scope, stream);
            };
        }
    }

    private static Collection<String> texts(JsonObject request, String name) {
        List<String> found = new ArrayList<>();
        request.get(name).getAsJsonArray().forEach(each -> found.add(each.getAsString()));
        return found;
    }
}
