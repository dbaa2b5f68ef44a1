import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.sun.management.OperatingSystemMXBean;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.ByteArraySerializer;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.avro.AvroReadSupport;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;

/**
 * Files into a stream by the Java client's transactional writer, as a peer of the benchmarks: one JSON request a line on
 * standard input, one JSON answer a line on standard output.
 *
 * <pre>
 *   {"do": "ingest", "controller": URI, "scope": S, "stream": T, "input": "csv" | "parquet", "files": [PATH],
 *    "schema": AVRO, "key": FIELD}
 * </pre>
 *
 * Each file is one transaction. Lines of CSV become JSON by Jackson, records of Parquet become Avro; the fields of CSV are
 * those of the schema, in its order. The seconds are from before the client is made until the last transaction is committed.
 * Nothing is recorded anywhere: after a crash nobody knows which file was the last.
 */
public final class IngestPeer {
    private static final long LEASE_MS = 30_000;
    private static final Gson GSON = new Gson();
    private static final JsonFactory JSON = new JsonFactory();
    private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private IngestPeer() {
    }

    private record Timed(double seconds, double cpu, long events) {
    }

    private record Failure(String error) {
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever libraries print must not mix with the answers
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
            return ingest(request);
        } catch (Exception | LinkageError e) { // the latter where a jar is missing
            return new Failure(e.toString());
        }
    }

    private static Timed ingest(JsonObject request) throws Exception {
        Schema schema = new Schema.Parser().parse(request.get("schema").getAsString());
        String key = request.get("key").getAsString();
        boolean csv = request.get("input").getAsString().equals("csv");
        long start = System.nanoTime();
        long cpu = SYSTEM.getProcessCpuTime();
        long events = 0;
        ClientConfig client = ClientConfig.builder().controllerURI(URI.create(request.get("controller").getAsString())).build();
        EventWriterConfig config = EventWriterConfig.builder().transactionTimeoutTime(LEASE_MS).build();
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(request.get("scope").getAsString(), client);
             TransactionalEventStreamWriter<byte[]> writer = factory.createTransactionalEventWriter(
                     request.get("stream").getAsString(), new ByteArraySerializer(), config)) {
            Transaction<byte[]> transaction = null;
            for (JsonElement file : request.getAsJsonArray("files")) {
                transaction = writer.beginTxn();
                Path path = Path.of(file.getAsString());
                events += csv ? writeCsv(path, schema, key, transaction) : writeParquet(path, schema, key, transaction);
                transaction.commit(); // flushes first
            }
            while (transaction != null && transaction.checkStatus() != Transaction.Status.COMMITTED) {
                Thread.sleep(5);
            }
        }
        return new Timed((System.nanoTime() - start) / 1e9, (SYSTEM.getProcessCpuTime() - cpu) / 1e9, events);
    }

    private static long writeCsv(Path file, Schema schema, String key, Transaction<byte[]> transaction) throws Exception {
        Schema.Field[] fields = schema.getFields().toArray(new Schema.Field[0]);
        String[] values = new String[fields.length];
        int keyed = schema.getField(key).pos();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        long events = 0;
        try (BufferedReader lines = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            lines.readLine(); // names
            for (String line = lines.readLine(); line != null; line = lines.readLine(), events++) {
                split(line, values);
                bytes.reset();
                try (JsonGenerator json = JSON.createGenerator(bytes)) {
                    json.writeStartObject();
                    for (int i = 0; i < fields.length; i++) {
                        json.writeFieldName(fields[i].name());
                        writeValue(json, fields[i].schema().getType(), values[i]);
                    }
                    json.writeEndObject();
                }
                transaction.writeEvent(values[keyed], bytes.toByteArray());
            }
        }
        return events;
    }

    /** No quotes and no escapes: the files have none. */
    private static void split(String line, String[] values) {
        int start = 0;
        for (int i = 0; i < values.length - 1; i++) {
            int end = line.indexOf(',', start);
            values[i] = line.substring(start, end);
            start = end + 1;
        }
        values[values.length - 1] = line.substring(start);
    }

    private static void writeValue(JsonGenerator json, Schema.Type type, String value) throws Exception {
        switch (type) {
            case LONG -> json.writeNumber(Long.parseLong(value));
            case DOUBLE -> json.writeNumber(Double.parseDouble(value));
            case BOOLEAN -> json.writeBoolean(Boolean.parseBoolean(value));
            default -> json.writeString(value);
        }
    }

    private static long writeParquet(Path file, Schema schema, String key, Transaction<byte[]> transaction) throws Exception {
        Configuration configuration = new Configuration();
        AvroReadSupport.setAvroReadSchema(configuration, schema);
        AvroReadSupport.setRequestedProjection(configuration, schema);
        GenericDatumWriter<GenericRecord> datums = new GenericDatumWriter<>(schema);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        int keyed = schema.getField(key).pos();
        long events = 0;
        try (ParquetReader<GenericRecord> records = AvroParquetReader.<GenericRecord>builder(
                HadoopInputFile.fromPath(new org.apache.hadoop.fs.Path(file.toUri()), configuration))
                .withConf(configuration).build()) {
            for (GenericRecord each = records.read(); each != null; each = records.read(), events++) {
                bytes.reset();
                datums.write(each, encoder);
                transaction.writeEvent(each.get(keyed).toString(), bytes.toByteArray());
            }
        }
        return events;
    }
}
