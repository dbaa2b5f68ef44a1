import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.format.EventFormat;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.protobuf.ProtobufFormat;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * CloudEvents by the SDK of Java: {@code SCHEMA write FOLDER COUNT} makes random events, {@code SCHEMA read FOLDER} reads
 * those of a folder. It has a file for each format, json, protobuf and avro, with an event on a line, in hexadecimal
 * digits. Both print each event as a line of JSON, its attributes as text, and its data in hexadecimal digits, after the
 * format that it was read in. SCHEMA is the Avro schema of the events: the SDK has no module for Avro.
 */
public final class CloudEventsPeer {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        StringBuilder lines = new StringBuilder();
        List<CloudEvent> made = new ArrayList<>();
        if (args[1].equals("write")) {
            Random source = new Random(35);
            for (int i = 0; i < Integer.parseInt(args[3]); i++) {
                made.add(random(source));
                lines.append(JSON.writeValueAsString(told(made.get(i)))).append('\n');
            }
        }
        for (String name : new String[] {"json", "protobuf", "avro"}) {
            Format format = format(name, args[0]);
            Path file = Path.of(args[2], name);
            List<String> events = new ArrayList<>();
            for (CloudEvent event : made) {
                events.add(HexFormat.of().formatHex(format.write(event)));
            }
            if (args[1].equals("write")) {
                Files.write(file, events);
                continue;
            }
            for (String event : Files.readAllLines(file)) {
                CloudEvent read = format.read(HexFormat.of().parseHex(event));
                lines.append(JSON.writeValueAsString(told(read).put("format", name))).append('\n');
            }
        }
        System.out.print(lines);
    }

    private interface Format {
        byte[] write(CloudEvent event) throws Exception;

        CloudEvent read(byte[] event) throws Exception;
    }

    private static Format format(String name, String schema) {
        if (name.equals("avro")) {
            return new Avro(new Schema.Parser().parse(schema));
        }
        EventFormat sdk = name.equals("json") ? new JsonFormat() : new ProtobufFormat();
        return new Format() {
            public byte[] write(CloudEvent event) {
                return sdk.serialize(event);
            }

            public CloudEvent read(byte[] event) {
                return sdk.deserialize(event);
            }
        };
    }

    private record Avro(Schema schema) implements Format {
        public byte[] write(CloudEvent event) throws Exception {
            Map<String, Object> attributes = new HashMap<>();
            for (String name : event.getAttributeNames()) {
                attributes.put(name, event.getAttribute(name).toString());
            }
            for (String name : event.getExtensionNames()) {
                Object value = event.getExtension(name);
                attributes.put(name, value instanceof Integer || value instanceof Boolean ? value : value.toString());
            }
            GenericRecord record = new GenericData.Record(schema);
            record.put("attribute", attributes);
            record.put("data", event.getData() == null ? null : ByteBuffer.wrap(event.getData().toBytes()));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
            new GenericDatumWriter<GenericRecord>(schema).write(record, encoder);
            encoder.flush();
            return out.toByteArray();
        }

        public CloudEvent read(byte[] event) throws Exception {
            GenericRecord record = new GenericDatumReader<GenericRecord>(schema)
                    .read(null, DecoderFactory.get().binaryDecoder(event, null));
            CloudEventBuilder builder = CloudEventBuilder.v1();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) record.get("attribute")).entrySet()) {
                String name = entry.getKey().toString(), value = entry.getValue().toString();
                switch (name) {
                    case "specversion" -> { }
                    case "id" -> builder.withId(value);
                    case "source" -> builder.withSource(URI.create(value));
                    case "type" -> builder.withType(value);
                    case "subject" -> builder.withSubject(value);
                    case "time" -> builder.withTime(OffsetDateTime.parse(value));
                    case "datacontenttype" -> builder.withDataContentType(value);
                    case "dataschema" -> builder.withDataSchema(URI.create(value));
                    default -> builder.withExtension(name, value);
                }
            }
            ByteBuffer data = (ByteBuffer) record.get("data");
            return data == null ? builder.build() : builder.withData(data.array()).build();
        }
    }

    private static CloudEvent random(Random source) {
        CloudEventBuilder builder = CloudEventBuilder.v1()
                .withId("id-" + source.nextLong())
                .withSource(URI.create("https://shop.example/orders?a=" + source.nextInt(5)))
                .withType(source.nextBoolean() ? "order.created" : "grün \"😀\"");
        if (source.nextBoolean()) {
            builder.withTime(Instant.ofEpochSecond(source.nextInt() * 20L, source.nextInt(3) * 1000L * source.nextInt(333333))
                    .atOffset(ZoneOffset.ofHours(source.nextInt(5) - 2)));
        }
        if (source.nextBoolean()) {
            builder.withExtension("partitionkey", "key " + source.nextInt(9));
        }
        if (source.nextBoolean()) {
            builder.withSubject("subject").withExtension("number", source.nextInt()).withExtension("flag", source.nextBoolean());
        }
        if (source.nextBoolean()) {
            builder.withDataSchema(URI.create("http://schemas.example/" + source.nextInt(9)));
        }
        String text = "{\"item\":\"tea \\\"" + source.nextInt(9) + "\",\"cups\":" + source.nextInt(9) + "}";
        byte[] raw = new byte[source.nextInt(40)];
        source.nextBytes(raw);
        return switch (source.nextInt(6)) {
            case 0 -> builder.build();
            case 1 -> builder.withData(text.getBytes(StandardCharsets.UTF_8)).build();
            case 2 -> builder.withData("text/plain", "hällo".getBytes(StandardCharsets.UTF_8)).build();
            case 3 -> builder.withData("application/octet-stream", raw).build();
            case 4 -> builder.withData("application/vnd.shop+json", text.getBytes(StandardCharsets.UTF_8)).build();
            default -> builder.withData("application/json", text.getBytes(StandardCharsets.UTF_8)).build();
        };
    }

    private static ObjectNode told(CloudEvent event) {
        ObjectNode told = JSON.createObjectNode();
        ObjectNode attributes = told.putObject("attributes");
        for (String name : new TreeSet<>(event.getAttributeNames())) {
            if (!name.equals("specversion")) {
                attributes.put(name, text(event.getAttribute(name)));
            }
        }
        for (String name : new TreeSet<>(event.getExtensionNames())) {
            attributes.put(name, text(event.getExtension(name)));
        }
        told.put("data", event.getData() == null ? null : HexFormat.of().formatHex(event.getData().toBytes()));
        return told;
    }

    private static String text(Object value) {
        if (value instanceof OffsetDateTime time) {
            return Long.toString(time.toEpochSecond() * 1_000_000 + time.getNano() / 1000);
        }
        return value instanceof byte[] raw ? Base64.getEncoder().encodeToString(raw) : value.toString();
    }
}
