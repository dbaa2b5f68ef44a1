import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.sun.management.OperatingSystemMXBean;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
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
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Readers of the Java client that share a stream in one group, each in a thread, asked as Peer is:
 *
 * <pre>
 *   {"do": "read", "controller": URI, "scope": S, "stream": T, "events": N, "readers": R}
 * </pre>
 *
 * The clock starts when all readers are in the group, and stops when the last event was given to one of them.
 */
public final class ReaderGroupPeer {
    private static final long SILENCE_NS = 20_000_000_000L;
    private static final Gson GSON = new Gson();
    private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private ReaderGroupPeer() {
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
            return read(request);
        } catch (Exception e) {
            return new Failure(e.toString());
        }
    }

    private static Timed read(JsonObject request) throws Exception {
        String scope = request.get("scope").getAsString();
        String group = "peer" + UUID.randomUUID().toString().replace("-", "");
        ClientConfig config =
                ClientConfig.builder().controllerURI(URI.create(request.get("controller").getAsString())).build();
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(scope, config);
             EventStreamClientFactory factory = EventStreamClientFactory.withScope(scope, config)) {
            manager.createReaderGroup(group, ReaderGroupConfig.builder()
                    .stream(Stream.of(scope, request.get("stream").getAsString())).build());
            List<EventStreamReader<byte[]>> readers = new ArrayList<>();
            for (int i = 0; i < request.get("readers").getAsInt(); i++) {
                readers.add(factory.createReader("reader" + i, group, new ByteArraySerializer(),
                        ReaderConfig.builder().build()));
            }
            Timed timed = readAll(readers, request.get("events").getAsLong());
            readers.forEach(EventStreamReader::close);
            manager.deleteReaderGroup(group);
            return timed;
        }
    }

    private static Timed readAll(List<EventStreamReader<byte[]>> readers, long wanted) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(readers.size());
        long start = System.nanoTime();
        long cpu = SYSTEM.getProcessCpuTime();
        AtomicLong got = new AtomicLong();
        AtomicLong bytes = new AtomicLong();
        AtomicLong last = new AtomicLong(start);
        List<Future<?>> tasks = new ArrayList<>();
        for (EventStreamReader<byte[]> reader : readers) {
            tasks.add(threads.submit(() -> drain(reader, wanted, got, bytes, last)));
        }
        for (Future<?> task : tasks) {
            task.get();
        }
        threads.shutdown();
        double seconds = (last.get() - start) / 1e9;
        return new Timed(seconds, (SYSTEM.getProcessCpuTime() - cpu) / 1e9, got.get(), bytes.get());
    }

    private static void drain(EventStreamReader<byte[]> reader, long wanted, AtomicLong got, AtomicLong bytes,
            AtomicLong last) {
        long own = 0; // told to the others every 1024 events, and in silence
        long ownBytes = 0;
        while (got.get() < wanted) {
            EventRead<byte[]> event = reader.readNextEvent(100);
            byte[] payload = event.getEvent();
            if (payload != null) {
                ownBytes += payload.length;
                own++;
            }
            if (own > 0 && (payload == null || own == 1024)) {
                last.accumulateAndGet(System.nanoTime() - (payload == null ? 100_000_000L : 0), Math::max);
                bytes.addAndGet(ownBytes);
                got.addAndGet(own);
                own = 0;
                ownBytes = 0;
            } else if (payload == null && System.nanoTime() - last.get() > SILENCE_NS) {
                throw new IllegalStateException("only " + got + " of " + wanted + " events arrived");
            }
        }
    }
}
