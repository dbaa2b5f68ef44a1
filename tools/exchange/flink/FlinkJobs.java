import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.connectors.flink.FlinkPravegaReader;
import io.pravega.connectors.flink.FlinkPravegaWriter;
import io.pravega.connectors.flink.PravegaConfig;
import io.pravega.connectors.flink.PravegaWriterMode;
import io.pravega.connectors.flink.serialization.PravegaDeserializationSchema;
import io.pravega.connectors.flink.serialization.PravegaSerializationSchema;
import io.pravega.connectors.flink.sink.PravegaSink;
import io.pravega.connectors.flink.source.PravegaSource;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.restartstrategy.RestartStrategies;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.time.Time;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Flink jobs that go on for long, and Flink's SQL.
 *
 * <pre>
 *   {"do": "copy", "api": API, "from": STREAM, "to": STREAM}   start to copy strings exactly once; the
 *       job fails at the first event behind its first checkpoint, and restarts from that
 *   {"do": "stop"}              end it: how often it failed, and how many checkpoints were complete
 *   {"do": "insert", "stream": STREAM, "table": DDL, "select": SQL}   a statement's rows into a table
 *   {"do": "select", "stream": STREAM, "table": DDL, "count": N}      N rows of a table
 * </pre>
 *
 * DDL are the columns of the table; events are JSON.
 */
public final class FlinkJobs extends JsonPeer {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();
    private static final AtomicInteger CHECKPOINTS = new AtomicInteger();
    private static final AtomicInteger FAILURES = new AtomicInteger();
    private JobClient job;

    private FlinkJobs() {
    }

    public static void main(String[] args) throws IOException {
        new FlinkJobs().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "copy" -> copy(request);
            case "stop" -> stop();
            case "insert" -> insert(request);
            case "select" -> select(request);
            default -> throw unknown(request);
        };
    }

    /** Fails once, at the first event behind a checkpoint. */
    private static final class FailingOnce extends RichMapFunction<String, String> implements CheckpointListener {
        @Override
        public String map(String event) {
            if (CHECKPOINTS.get() > 0 && FAILURES.compareAndSet(0, 1)) {
                throw new IllegalStateException("asked to fail");
            }
            return event;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            CHECKPOINTS.incrementAndGet();
        }
    }

    private Object copy(JsonObject request) throws Exception {
        CHECKPOINTS.set(0);
        FAILURES.set(0);
        PravegaConfig config = PravegaConfig.fromDefaults().withControllerURI(URI.create(text(request, "controller")))
                .withDefaultScope(text(request, "scope"));
        StreamExecutionEnvironment environment = FlinkPeer.environment();
        environment.setRestartStrategy(RestartStrategies.fixedDelayRestart(3, 500));
        PravegaDeserializationSchema<String> read = new PravegaDeserializationSchema<>(String.class,
                new UTF8StringSerializer());
        PravegaSerializationSchema<String> write = new PravegaSerializationSchema<>(new UTF8StringSerializer());
        DataStream<String> events;
        if (text(request, "api").equals("legacy")) {
            events = environment.addSource(FlinkPravegaReader.<String>builder().withPravegaConfig(config)
                    .forStream(text(request, "from")).withDeserializationSchema(read)
                    .withReaderGroupRefreshTime(FlinkPeer.REFRESH).build());
        } else {
            events = environment.fromSource(PravegaSource.<String>builder().withPravegaConfig(config)
                    .forStream(text(request, "from")).withDeserializationSchema(read)
                    .withReaderGroupRefreshTime(FlinkPeer.REFRESH).build(), WatermarkStrategy.noWatermarks(), "from");
        }
        events = events.map(new FailingOnce()).returns(String.class);
        if (text(request, "api").equals("legacy")) {
            events.addSink(FlinkPravegaWriter.<String>builder().withPravegaConfig(config)
                    .forStream(text(request, "to")).withEventRouter(FlinkJobs::key)
                    .withWriterMode(PravegaWriterMode.EXACTLY_ONCE).withTxnLeaseRenewalPeriod(Time.seconds(60))
                    .withSerializationSchema(write).build());
        } else {
            events.sinkTo(PravegaSink.<String>builder().withPravegaConfig(config).forStream(text(request, "to"))
                    .withEventRouter(FlinkJobs::key).withDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                    .withTxnLeaseRenewalPeriod(Time.seconds(60)).withSerializationSchema(write).build());
        }
        job = environment.executeAsync();
        return null;
    }

    /** An event is "KEY NUMBER". */
    private static String key(String event) {
        return event.substring(0, event.indexOf(' '));
    }

    private Object stop() throws Exception {
        job.cancel().get();
        JsonObject found = new JsonObject();
        found.addProperty("failures", FAILURES.get());
        found.addProperty("checkpoints", CHECKPOINTS.get());
        return found;
    }

    private static StreamTableEnvironment table(JsonObject request) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(FlinkPeer.environment());
        tables.executeSql("CREATE TABLE events (" + text(request, "table") + ") WITH ('connector' = 'pravega', "
                + "'controller-uri' = '" + text(request, "controller") + "', 'scope' = '" + text(request, "scope") + "', "
                + "'scan.execution.type' = 'streaming', 'scan.streams' = '" + text(request, "stream") + "', "
                + "'scan.reader-group.refresh.interval' = '300 ms', "
                + "'sink.stream' = '" + text(request, "stream") + "', 'sink.semantic' = 'exactly-once', "
                + "'sink.routing-key.field.name' = 'zone', 'format' = 'json')");
        return tables;
    }

    private static Object insert(JsonObject request) throws Exception {
        table(request).executeSql("INSERT INTO events " + text(request, "select")).await();
        return null;
    }

    private static Object select(JsonObject request) throws Exception {
        int count = request.get("count").getAsInt();
        JsonArray rows = new JsonArray();
        try (CloseableIterator<Row> found = table(request).executeSql("SELECT * FROM events").collect()) {
            while (rows.size() < count) {
                rows.add(GSON.toJsonTree(plain(found.next())));
            }
        }
        return rows;
    }

    private static Object plain(Object value) {
        if (value instanceof Row row) {
            List<Object> fields = new ArrayList<>();
            for (int i = 0; i < row.getArity(); i++) {
                fields.add(plain(row.getField(i)));
            }
            return fields;
        } else if (value instanceof Object[] items) {
            List<Object> list = new ArrayList<>();
            for (Object item : items) {
                list.add(plain(item));
            }
            return list;
        } else if (value instanceof Map<?, ?> map) {
            Map<String, Object> entries = new TreeMap<>();
            map.forEach((name, each) -> entries.put(name.toString(), plain(each)));
            return entries;
        }
        return value;
    }
}
