import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.PrintStream;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Java's own libraries as a peer of the benchmarks: one JSON request a line on standard input, one answer a line on standard output.
 *
 * <pre>
 *   {"do": "read" | "write", "format": "java" | "avro" | "json" | "protobuf", "file": EVENTS, "schema": TEXT}
 * </pre>
 *
 * The answer holds the seconds and this process's CPU seconds for all events of the file, as often as SHORTEST_NS needs;
 * the file is loaded once. A write writes the values that were read from it.
 */
public final class SerdePeer {
    private static final long SHORTEST_NS = 80_000_000;
    private static final Gson GSON = new Gson();
    private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private static String loaded = "";
    private static byte[][] events;
    private static Object[] values;
    private static Object kept;

    private SerdePeer() {
    }

    interface Codec {
        Object read(byte[] event) throws Exception;

        byte[] write(Object value) throws Exception;
    }

    private record Timed(double seconds, double cpu, int events) {
    }

    private record Failure(String error) {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever the libraries print must not mix with the answers
        answers.println("{\"ready\": \"Java " + Runtime.version() + "\"}");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(GSON.toJson(answer(GSON.fromJson(line, JsonObject.class))));
            answers.flush();
        }
    }

    private static Object answer(JsonObject request) {
        try {
            Codec codec = codec(request.get("format").getAsString(), request.get("schema").getAsString());
            load(request.get("file").getAsString(), codec);
            return request.get("do").getAsString().equals("read") ? read(codec) : write(codec);
        } catch (Exception e) {
            return new Failure(e.toString());
        }
    }

    private static void load(String file, Codec codec) throws Exception {
        if (file.equals(loaded)) {
            return;
        }
        List<byte[]> found = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(Files.readAllBytes(Path.of(file))))) {
            while (in.available() > 0) {
                found.add(in.readNBytes(in.readInt()));
            }
        }
        events = found.toArray(byte[][]::new);
        values = new Object[events.length];
        for (int i = 0; i < events.length; i++) {
            values[i] = codec.read(events[i]);
        }
        loaded = file;
    }

    private static Timed read(Codec codec) throws Exception {
        long ns = 0;
        long cpu = 0;
        int count = 0;
        while (ns < SHORTEST_NS) {
            Object[] made = new Object[events.length];
            long cpuBefore = SYSTEM.getProcessCpuTime();
            long start = System.nanoTime();
            for (int i = 0; i < made.length; i++) {
                made[i] = codec.read(events[i]);
            }
            ns += System.nanoTime() - start;
            cpu += SYSTEM.getProcessCpuTime() - cpuBefore;
            count += made.length;
            kept = made; // the work must not be optimized away
        }
        return new Timed(ns / 1e9, cpu / 1e9, count);
    }

    private static Timed write(Codec codec) throws Exception {
        long ns = 0;
        long cpu = 0;
        int count = 0;
        while (ns < SHORTEST_NS) {
            byte[][] made = new byte[values.length][];
            long cpuBefore = SYSTEM.getProcessCpuTime();
            long start = System.nanoTime();
            for (int i = 0; i < made.length; i++) {
                made[i] = codec.write(values[i]);
            }
            ns += System.nanoTime() - start;
            cpu += SYSTEM.getProcessCpuTime() - cpuBefore;
            count += made.length;
            kept = made;
        }
        return new Timed(ns / 1e9, cpu / 1e9, count);
    }

    private static Codec codec(String format, String schema) {
        return switch (format) {
            case "java" -> new Streams();
            case "avro" -> new Generic(new Schema.Parser().parse(schema));
            case "json" -> new Jackson();
            case "protobuf" -> new Coded();
            default -> throw new IllegalArgumentException(format);
        };
    }

    /** As Pravega's JavaSerializer does it: a stream for each event. */
    static final class Streams implements Codec {
        @Override
        public Object read(byte[] event) throws Exception {
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(event))) {
                return in.readObject();
            }
        }

        @Override
        public byte[] write(Object value) throws Exception {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(value);
            }
            return bytes.toByteArray();
        }
    }

    static final class Generic implements Codec {
        private final GenericDatumReader<Object> reader;
        private final GenericDatumWriter<Object> writer;
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private BinaryDecoder decoder;
        private BinaryEncoder encoder;

        Generic(Schema schema) {
            reader = new GenericDatumReader<>(schema);
            writer = new GenericDatumWriter<>(schema);
        }

        @Override
        public Object read(byte[] event) throws Exception {
            decoder = DecoderFactory.get().binaryDecoder(event, decoder);
            return reader.read(null, decoder);
        }

        @Override
        public byte[] write(Object value) throws Exception {
            out.reset();
            encoder = EncoderFactory.get().binaryEncoder(out, encoder);
            writer.write(value, encoder);
            encoder.flush();
            return out.toByteArray();
        }
    }

    /** The flat record, as Jackson and generated Protobuf classes fill it. */
    public static final class Sensor {
        public long id;
        public String name = "";
        public double temp;
        public int count;
        public boolean ok;
        public long ts;
    }

    static final class Jackson implements Codec {
        private static final ObjectMapper MAPPER = new ObjectMapper();
        private final ObjectReader reader = MAPPER.readerFor(Sensor.class);
        private final ObjectWriter writer = MAPPER.writerFor(Sensor.class);

        @Override
        public Object read(byte[] event) throws Exception {
            return reader.readValue(event);
        }

        @Override
        public byte[] write(Object value) throws Exception {
            return writer.writeValueAsBytes(value);
        }
    }

    /** protobuf-java's streams in the way in which its generated classes use them. */
    static final class Coded implements Codec {
        @Override
        public Object read(byte[] event) throws Exception {
            CodedInputStream in = CodedInputStream.newInstance(event);
            Sensor value = new Sensor();
            for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
                switch (tag) {
                    case 8 -> value.id = in.readInt64();
                    case 18 -> value.name = in.readStringRequireUtf8();
                    case 25 -> value.temp = in.readDouble();
                    case 32 -> value.count = in.readInt32();
                    case 40 -> value.ok = in.readBool();
                    case 48 -> value.ts = in.readInt64();
                    default -> in.skipField(tag);
                }
            }
            return value;
        }

        @Override
        public byte[] write(Object object) throws Exception {
            Sensor value = (Sensor) object;
            byte[] bytes = new byte[size(value)];
            CodedOutputStream out = CodedOutputStream.newInstance(bytes);
            if (value.id != 0) {
                out.writeInt64(1, value.id);
            }
            if (!value.name.isEmpty()) {
                out.writeString(2, value.name);
            }
            if (value.temp != 0) {
                out.writeDouble(3, value.temp);
            }
            if (value.count != 0) {
                out.writeInt32(4, value.count);
            }
            if (value.ok) {
                out.writeBool(5, true);
            }
            if (value.ts != 0) {
                out.writeInt64(6, value.ts);
            }
            out.checkNoSpaceLeft();
            return bytes;
        }

        private static int size(Sensor value) {
            return (value.id != 0 ? CodedOutputStream.computeInt64Size(1, value.id) : 0)
                    + (!value.name.isEmpty() ? CodedOutputStream.computeStringSize(2, value.name) : 0)
                    + (value.temp != 0 ? CodedOutputStream.computeDoubleSize(3, value.temp) : 0)
                    + (value.count != 0 ? CodedOutputStream.computeInt32Size(4, value.count) : 0)
                    + (value.ok ? CodedOutputStream.computeBoolSize(5, true) : 0)
                    + (value.ts != 0 ? CodedOutputStream.computeInt64Size(6, value.ts) : 0);
        }
    }
}

/** The flat object of Java's own streams. */
final class Reading implements Serializable {
    private static final long serialVersionUID = 5L;
    long id;
    int count;
    double value;
    boolean ok;
    String name;
    char grade;
    short small;
    byte tiny;
    float ratio;
    String unit;
    Long seen;
    Integer level;
    Double limit;
}
