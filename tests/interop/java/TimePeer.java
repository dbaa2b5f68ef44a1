import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.ClientConfig;
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
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
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
 * One JSON request a line on standard input, one JSON answer a line on standard output; each takes "controller", "scope" and
 * "stream" as well.
 */
public final class TimePeer {
    private static final long PATIENCE_MS = 20_000;
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();
    private static final Map<String, EventStreamWriter<String>> WRITERS = new HashMap<>();
    private static final Map<String, TransactionalEventStreamWriter<String>> TRANSACTIONAL = new HashMap<>();

    private TimePeer() {
    }

    private record Failure(String error) {
    }

    private record Done(Object value) {
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever the client prints must not mix with the answers
        answers.println("{\"ready\": \"java " + Runtime.version() + "\"}");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(GSON.toJson(answer(GSON.fromJson(line, JsonObject.class))));
            answers.flush();
        }
        System.exit(0);
    }

    private static Object answer(JsonObject request) {
        try {
            return new Done(switch (text(request, "do")) {
                case "note" -> note(request);
                case "commit" -> commit(request);
                case "window" -> window(request);
                default -> throw new IllegalArgumentException("no such request: " + request);
            });
        } catch (Exception e) {
            e.printStackTrace();
            return new Failure(e.toString());
        }
    }

    private static String text(JsonObject request, String name) {
        return request.get(name).getAsString();
    }

    private static ClientConfig config(JsonObject request) {
        return ClientConfig.builder().controllerURI(URI.create(text(request, "controller"))).build();
    }

    private static EventStreamClientFactory factory(JsonObject request) {
        return EventStreamClientFactory.withScope(text(request, "scope"), config(request));
    }

    private static String key(JsonElement event) {
        return event.getAsJsonArray().get(0).getAsString();
    }

    private static String payload(JsonElement event) {
        return event.getAsJsonArray().get(1).getAsString();
    }

    private static Object note(JsonObject request) {
        // Not closed: the factory's threads are daemons.
        EventStreamWriter<String> writer = WRITERS.computeIfAbsent(text(request, "stream") + text(request, "writer"),
                name -> factory(request).createEventWriter(text(request, "writer"), text(request, "stream"),
                        new UTF8StringSerializer(), EventWriterConfig.builder().build()));
        for (JsonElement event : request.get("events").getAsJsonArray()) {
            writer.writeEvent(key(event), payload(event));
        }
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
        for (JsonElement event : request.get("events").getAsJsonArray()) {
            transaction.writeEvent(key(event), payload(event));
        }
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
