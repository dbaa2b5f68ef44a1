import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.sun.management.OperatingSystemMXBean;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.impl.ByteArraySerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;

/**
 * The Java client as a peer of the benchmarks: one JSON request a line on standard input, one JSON answer a line on standard
 * output. One JVM serves all requests, so that its JIT is warm.
 *
 * <pre>
 *   {"do": "write", "controller": URI, "scope": S, "stream": T, "events": N, "size": BYTES, "keys": K}
 *   {"do": "read",  "controller": URI, "scope": S, "stream": T, "events": N}
 * </pre>
 *
 * The answer holds the seconds between the first event and the acknowledgement (or arrival) of the last, this process's CPU
 * seconds in that time, and the bytes of the payloads. Connections are made, and events and keys are built, before the clock starts.
 */
public final class Peer {
    private static final int DISTINCT_EVENTS = 1024;
    private static final long SILENCE_NS = 20_000_000_000L;
    private static final Gson GSON = new Gson();
    private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private Peer() {
    }

    private record Timed(double seconds, double cpu, long events, long bytes) {
    }

    private record Failure(String error) {
    }

    public static void main(String[] args) throws Exception {
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
            return request.get("do").getAsString().equals("write") ? write(request) : read(request);
        } catch (Exception e) {
            return new Failure(e.toString());
        }
    }

    private static ClientConfig config(JsonObject request) {
        return ClientConfig.builder().controllerURI(URI.create(request.get("controller").getAsString())).build();
    }

    private static Timed write(JsonObject request) throws Exception {
        int count = request.get("events").getAsInt();
        byte[][] events = events(request.get("size").getAsInt());
        String[] keys = keys(request.get("keys").getAsInt());
        try (EventStreamClientFactory factory =
                     EventStreamClientFactory.withScope(request.get("scope").getAsString(), config(request));
             EventStreamWriter<byte[]> writer = factory.createEventWriter(request.get("stream").getAsString(),
                     new ByteArraySerializer(), EventWriterConfig.builder().build())) {
            writer.writeEvent(keys[0], events[0]).get(); // connects
            long start = System.nanoTime();
            long cpu = SYSTEM.getProcessCpuTime();
            for (int i = 1; i < count; i++) {
                writer.writeEvent(keys[i % keys.length], events[i % DISTINCT_EVENTS]);
            }
            writer.flush();
            return timed(start, cpu, count, (long) count * events[0].length);
        }
    }

    private static Timed timed(long start, long cpu, long events, long bytes) {
        double seconds = (System.nanoTime() - start) / 1e9;
        return new Timed(seconds, (SYSTEM.getProcessCpuTime() - cpu) / 1e9, events, bytes);
    }

    private static byte[][] events(int size) {
        byte[][] events = new byte[DISTINCT_EVENTS][size];
        for (int i = 0; i < DISTINCT_EVENTS; i++) {
            Arrays.fill(events[i], (byte) ('a' + i % 26));
        }
        return events;
    }

    private static String[] keys(int count) {
        String[] keys = new String[count];
        for (int i = 0; i < count; i++) {
            keys[i] = Integer.toString(i);
        }
        return keys;
    }

    private static Timed read(JsonObject request) throws Exception {
        String scope = request.get("scope").getAsString();
        String group = "peer" + UUID.randomUUID().toString().replace("-", "");
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(scope, config(request))) {
            manager.createReaderGroup(group, ReaderGroupConfig.builder()
                    .stream(Stream.of(scope, request.get("stream").getAsString())).disableAutomaticCheckpoints().build());
            Timed timed;
            try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(scope, config(request));
                 EventStreamReader<byte[]> reader = factory.createReader("reader", group, new ByteArraySerializer(),
                         ReaderConfig.builder().build())) {
                timed = drain(reader, request.get("events").getAsLong());
            }
            manager.deleteReaderGroup(group);
            return timed;
        }
    }

    private static Timed drain(EventStreamReader<byte[]> reader, long wanted) {
        long start = System.nanoTime();
        long cpu = SYSTEM.getProcessCpuTime();
        long last = start;
        long got = 0;
        long bytes = 0;
        while (got < wanted) {
            EventRead<byte[]> event = reader.readNextEvent(2000);
            byte[] payload = event.getEvent();
            if (payload != null) {
                bytes += payload.length;
                if ((++got & 1023) == 0) {
                    last = System.nanoTime();
                }
            } else if (System.nanoTime() - last > SILENCE_NS) {
                throw new IllegalStateException("only " + got + " of " + wanted + " events arrived");
            }
        }
        return timed(start, cpu, got, bytes);
    }
}
