import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.sun.management.OperatingSystemMXBean;
import io.pravega.client.ClientConfig;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.tables.IteratorItem;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.TableKey;
import io.pravega.client.tables.TableModification;
import io.pravega.client.tables.Version;
import io.pravega.common.util.AsyncIterator;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Key-value tables of the Java client, one call after the other:
 *
 * <pre>
 *   {"do": "put", "controller": URI, "scope": S, "table": T, "from": N, "to": N, "batch": B, "size": N}
 *   {"do": "get", …}        the entries of a range, by their keys
 *   {"do": "entries", …}    the entries of the whole table, in the order of their keys
 *   {"do": "change", …}     put each entry of a range with its version
 * </pre>
 *
 * Entry i has the primary key i / B and the secondary key i % B, 8 bytes each. An update has the B entries of a primary key.
 */
public final class TablesPeer {
    private static final long SECONDS = 60;
    private static final Gson GSON = new Gson();
    private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private TablesPeer() {
    }

    private record Timed(double seconds, double cpu, long events, long bytes) {
    }

    private record Failure(String error) {
    }

    private record Load(long from, long to, int batch, int size) {
        TableKey key(long number) {
            return new TableKey(ByteBuffer.allocate(8).putLong(0, number / batch),
                    ByteBuffer.allocate(8).putLong(0, number % batch));
        }

        ByteBuffer value() {
            byte[] bytes = new byte[size];
            Arrays.fill(bytes, (byte) 'y');
            return ByteBuffer.wrap(bytes);
        }
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
        ClientConfig config =
                ClientConfig.builder().controllerURI(URI.create(request.get("controller").getAsString())).build();
        Load load = new Load(request.get("from").getAsLong(), request.get("to").getAsLong(),
                request.get("batch").getAsInt(), request.get("size").getAsInt());
        try (KeyValueTableFactory factory =
                KeyValueTableFactory.withScope(request.get("scope").getAsString(), config);
             KeyValueTable table = factory.forKeyValueTable(request.get("table").getAsString(),
                KeyValueTableClientConfiguration.builder().build())) {
            table.getAll(List.of(load.key(load.from))).get(SECONDS, TimeUnit.SECONDS); // connects
            long start = System.nanoTime();
            long cpu = SYSTEM.getProcessCpuTime();
            long[] done = switch (request.get("do").getAsString()) {
                case "put" -> put(table, load);
                case "get" -> get(table, load);
                case "entries" -> entries(table);
                default -> change(table, load);
            };
            double seconds = (System.nanoTime() - start) / 1e9;
            return new Timed(seconds, (SYSTEM.getProcessCpuTime() - cpu) / 1e9, done[0], done[1]);
        } catch (Exception e) {
            return new Failure(e.toString());
        }
    }

    private static long[] put(KeyValueTable table, Load load) throws Exception {
        for (long first = load.from; first < load.to; first += load.batch) {
            List<TableModification> changes = new ArrayList<>();
            for (long number = first; number < first + load.batch; number++) {
                changes.add(new Put(load.key(number), load.value()));
            }
            table.update(changes).get(SECONDS, TimeUnit.SECONDS);
        }
        return new long[] {load.to - load.from, (load.to - load.from) * load.size};
    }

    private static long[] get(KeyValueTable table, Load load) throws Exception {
        long count = 0;
        long bytes = 0;
        for (long first = load.from; first < load.to; first += load.batch) {
            List<TableKey> keys = new ArrayList<>();
            for (long number = first; number < first + load.batch; number++) {
                keys.add(load.key(number));
            }
            for (TableEntry entry : table.getAll(keys).get(SECONDS, TimeUnit.SECONDS)) {
                count++;
                bytes += entry.getValue().remaining();
            }
        }
        return new long[] {count, bytes};
    }

    private static long[] entries(KeyValueTable table) throws Exception {
        AsyncIterator<IteratorItem<TableEntry>> batches =
                table.iterator().maxIterationSize(1000).all().entries();
        long count = 0;
        long bytes = 0;
        while (true) {
            IteratorItem<TableEntry> batch = batches.getNext().get(SECONDS, TimeUnit.SECONDS);
            if (batch == null) {
                return new long[] {count, bytes};
            }
            for (TableEntry entry : batch.getItems()) {
                count++;
                bytes += entry.getValue().remaining();
            }
        }
    }

    private static long[] change(KeyValueTable table, Load load) throws Exception {
        Version version = table.get(load.key(load.from)).get(SECONDS, TimeUnit.SECONDS).getVersion();
        for (long number = load.from; number < load.to; number++) {
            version = table.update(new Put(load.key(load.from), load.value(), version)).get(SECONDS, TimeUnit.SECONDS);
        }
        return new long[] {load.to - load.from, (load.to - load.from) * load.size};
    }
}
