import com.example.taxi.Trips;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.stream.Serializer;
import io.pravega.connectors.flink.FlinkPravegaReader;
import io.pravega.connectors.flink.FlinkPravegaWriter;
import io.pravega.connectors.flink.PravegaConfig;
import io.pravega.connectors.flink.PravegaWriterMode;
import io.pravega.connectors.flink.serialization.DeserializerFromSchemaRegistry;
import io.pravega.connectors.flink.serialization.PravegaDeserializationSchema;
import io.pravega.connectors.flink.serialization.PravegaSerializationSchema;
import io.pravega.connectors.flink.serialization.SerializerFromSchemaRegistry;
import io.pravega.connectors.flink.sink.PravegaSink;
import io.pravega.connectors.flink.source.PravegaSource;
import io.pravega.connectors.flink.watermark.LowerBoundAssigner;
import java.io.IOException;
import java.io.Serializable;
import java.net.URI;
import java.nio.ByteBuffer;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.restartstrategy.RestartStrategies;
import org.apache.flink.api.common.time.Time;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.streaming.api.CheckpointingMode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.CloseableIterator;

/**
 * Flink jobs with the Pravega connector, in a mini cluster of one slot: each request is a job that ends.
 *
 * <pre>
 *   {"do": "write", "api": API, "first": A, "last": B, "mode": "plain" or "transaction", "time": T or null}
 *       trips A to B; transactions are those of exactly once; with a time, the events have
 *       times, which are their numbers, and watermarks follow them
 *   {"do": "read", "api": API, "count": N, "timed": BOOLEAN}   N events from the head of
 *       the stream, and what watermarks came between and behind them
 * </pre>
 *
 * API is "legacy" (FlinkPravegaReader and -Writer) or "FLIP-27" (PravegaSource and -Sink). Asked as JsonPeer says.
 */
public final class FlinkPeer extends JsonPeer {
    /** How often a reader looks for a checkpoint: by default every three seconds. */
    static final Time REFRESH = Time.milliseconds(300);
    private static final long WATERMARK_MILLIS = 20;
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();

    private FlinkPeer() {
    }

    public static void main(String[] args) throws IOException {
        new FlinkPeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "write" -> write(request);
            case "read" -> read(request);
            default -> throw unknown(request);
        };
    }

    private static Trips.Format format(JsonObject request) {
        return new Trips.Format(text(request, "format"), text(request, "registry"), text(request, "scope"),
                text(request, "group"), text(request, "codec"));
    }

    private static PravegaConfig pravega(JsonObject request) {
        PravegaConfig config = PravegaConfig.fromDefaults().withControllerURI(URI.create(text(request, "controller")))
                .withDefaultScope(text(request, "scope"));
        String registry = text(request, "registry");
        return registry == null ? config : config.withSchemaRegistryURI(URI.create(registry));
    }

    static StreamExecutionEnvironment environment() {
        Configuration configuration = new Configuration();
        configuration.setString("rest.port", "0");
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        environment.enableCheckpointing(2_000, CheckpointingMode.EXACTLY_ONCE);
        // A checkpoint that begins before the reader is in its group is done there without it. The reader is not told
        // then, and Flink waits for it until a timeout, which by default is ten minutes.
        environment.getCheckpointConfig().setMinPauseBetweenCheckpoints(2_000);
        environment.getCheckpointConfig().setCheckpointTimeout(10_000);
        environment.getCheckpointConfig().setTolerableCheckpointFailureNumber(100);
        environment.setRestartStrategy(RestartStrategies.noRestart());
        return environment;
    }

    /** Makes the event of a number with the serializers that an application would give to Flink. */
    private static final class Numbered implements Serializer<Long>, Serializable {
        private final Trips.Format format;
        private final Serializer<Object> fromRegistry;
        private transient Serializer<Object> serializer;

        @SuppressWarnings({"unchecked", "rawtypes"})
        Numbered(Trips.Format format, PravegaConfig config) {
            this.format = format;
            this.fromRegistry = format.registry() == null ? null
                    : (Serializer) new SerializerFromSchemaRegistry(config, format.group(), type(format));
        }

        @Override
        public ByteBuffer serialize(Long number) {
            if (serializer == null) {
                serializer = fromRegistry != null ? fromRegistry : Trips.serializer(format, true);
            }
            return serializer.serialize(Trips.value(format, number));
        }

        @Override
        public Long deserialize(ByteBuffer event) {
            throw new UnsupportedOperationException();
        }
    }

    private static Class<?> type(Trips.Format format) {
        return switch (format.name()) {
            case "avro" -> GenericRecord.class;
            case "protobuf" -> com.google.protobuf.DynamicMessage.class;
            default -> com.example.taxi.Trip.class;
        };
    }

    /** Reads events with the serializers that an application would give to Flink; what is in them, as JSON. */
    private static final class Shown implements Serializer<String>, Serializable {
        private final Trips.Format format;
        private final Serializer<Object> fromRegistry;
        private transient Serializer<Object> serializer;

        @SuppressWarnings({"unchecked", "rawtypes"})
        Shown(Trips.Format format, PravegaConfig config) {
            this.format = format;
            this.fromRegistry = format.registry() == null ? null
                    : (Serializer) new DeserializerFromSchemaRegistry(config, format.group(), type(format));
        }

        @Override
        public ByteBuffer serialize(String value) {
            throw new UnsupportedOperationException();
        }

        @Override
        public String deserialize(ByteBuffer event) {
            if (serializer == null) {
                serializer = fromRegistry != null ? fromRegistry : Trips.serializer(format, false);
            }
            return GSON.toJson(Trips.plain(serializer.deserialize(event)));
        }
    }

    private static Object write(JsonObject request) throws Exception {
        boolean once = text(request, "mode").equals("transaction");
        boolean timed = text(request, "time") != null;
        PravegaConfig config = pravega(request);
        PravegaSerializationSchema<Long> schema = new PravegaSerializationSchema<>(new Numbered(format(request), config));
        StreamExecutionEnvironment environment = environment();
        DataStream<Long> numbers = environment.fromSequence(request.get("first").getAsLong(),
                request.get("last").getAsLong() - 1);
        if (timed) {
            // The writer notes the watermark that it has with an event, and Flink makes one only now and then.
            environment.getConfig().setAutoWatermarkInterval(WATERMARK_MILLIS);
            numbers = numbers.map(number -> {
                Thread.sleep(2 * WATERMARK_MILLIS);
                return number;
            }).returns(Types.LONG).assignTimestampsAndWatermarks(WatermarkStrategy.<Long>forMonotonousTimestamps()
                    .withTimestampAssigner((number, before) -> number));
        }
        if (text(request, "api").equals("legacy")) {
            numbers.addSink(FlinkPravegaWriter.<Long>builder().withPravegaConfig(config)
                    .forStream(text(request, "stream")).withEventRouter(number -> "k" + number % 7)
                    .withWriterMode(once ? PravegaWriterMode.EXACTLY_ONCE : PravegaWriterMode.ATLEAST_ONCE)
                    .enableWatermark(timed).withTxnLeaseRenewalPeriod(Time.seconds(60))
                    .withSerializationSchema(schema).build());
        } else {
            numbers.sinkTo(PravegaSink.<Long>builder().withPravegaConfig(config).forStream(text(request, "stream"))
                    .withEventRouter(number -> "k" + number % 7)
                    .withDeliveryGuarantee(once ? DeliveryGuarantee.EXACTLY_ONCE : DeliveryGuarantee.AT_LEAST_ONCE)
                    .withTxnLeaseRenewalPeriod(Time.seconds(60)).withSerializationSchema(schema).build());
        }
        environment.execute();
        return null;
    }

    /** Puts watermarks between the events, where they have come. */
    private static final class Timed extends AbstractStreamOperator<String>
            implements OneInputStreamOperator<String, String> {
        @Override
        public void processElement(StreamRecord<String> event) {
            output.collect(new StreamRecord<>("event " + event.getValue()));
        }

        @Override
        public void processWatermark(Watermark mark) throws Exception {
            output.collect(new StreamRecord<>("mark " + mark.getTimestamp()));
            super.processWatermark(mark);
        }
    }

    private static Object read(JsonObject request) throws Exception {
        PravegaConfig config = pravega(request);
        int count = request.get("count").getAsInt();
        PravegaDeserializationSchema<String> schema = new PravegaDeserializationSchema<>(String.class,
                new Shown(format(request), config));
        StreamExecutionEnvironment environment = environment();
        DataStream<String> events;
        if (text(request, "api").equals("legacy")) {
            FlinkPravegaReader.Builder<String> builder = FlinkPravegaReader.<String>builder().withPravegaConfig(config)
                    .forStream(text(request, "stream")).withDeserializationSchema(schema)
                    .withReaderGroupRefreshTime(REFRESH);
            if (request.get("timed").getAsBoolean()) {
                builder = builder.withTimestampAssigner(new Times());
            }
            events = environment.addSource(builder.build());
        } else {
            events = environment.fromSource(PravegaSource.<String>builder().withPravegaConfig(config)
                    .forStream(text(request, "stream")).withDeserializationSchema(schema)
                    .withReaderGroupRefreshTime(REFRESH).build(),
                    WatermarkStrategy.noWatermarks(), "trips");
        }
        boolean timed = request.get("timed").getAsBoolean() && text(request, "api").equals("legacy");
        JsonArray values = new JsonArray();
        JsonArray marks = new JsonArray();
        try (CloseableIterator<String> lines = events.transform("timed", Types.STRING, new Timed()).executeAndCollect()) {
            while ((values.size() < count || timed && marks.size() == 0) && lines.hasNext()) {
                String line = lines.next();
                if (line.startsWith("mark ")) {
                    marks.add(Long.parseLong(line.substring("mark ".length())));
                } else {
                    values.add(GSON.fromJson(line.substring("event ".length()), JsonElement.class));
                }
            }
        }
        JsonObject found = new JsonObject();
        found.add("values", values);
        found.add("marks", marks);
        return found;
    }

    private static final class Times extends LowerBoundAssigner<String> {
        @Override
        public long extractTimestamp(String value, long before) {
            return before;
        }
    }
}
