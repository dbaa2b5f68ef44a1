import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaDeserializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaDeserializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Writes and reads events with Apicurio's serializers for Kafka.
 *
 * <p>Each line of the input is a request: {@code do} is write or read, with a format, the serializer's settings, a type
 * and values. The type is an Avro schema, or a Protobuf file and the name of a message in it. The values are JSON, the events
 * hexadecimal. Each line of the output is a JSON object with the results.
 */
public final class ApicurioPeer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOPIC = "orders";

    public static void main(String[] args) throws Exception {
        System.out.println("{\"ready\": \"apicurio-serdes\"}");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("value", answer(JSON.readTree(line)));
            } catch (Exception error) {
                answer.put("error", String.valueOf(error));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static List<Object> answer(JsonNode call) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        call.get("settings").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
        String format = call.get("format").asText();
        List<Object> results = new ArrayList<>();
        if (call.get("do").asText().equals("write")) {
            try (Serializer<Object> serializer = serializer(format)) {
                serializer.configure(settings, false);
                for (JsonNode value : call.get("values")) {
                    byte[] event = serializer.serialize(TOPIC, value(format, call.get("type"), value));
                    results.add(HexFormat.of().formatHex(event));
                }
            }
        } else {
            try (Deserializer<Object> deserializer = deserializer(format)) {
                deserializer.configure(settings, false);
                for (JsonNode event : call.get("values")) {
                    results.add(json(deserializer.deserialize(TOPIC, HexFormat.of().parseHex(event.asText()))));
                }
            }
        }
        return results;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Serializer<Object> serializer(String format) {
        return (Serializer) switch (format) {
            case "avro" -> new AvroKafkaSerializer<Object>();
            case "protobuf" -> new ProtobufKafkaSerializer<Message>();
            default -> new JsonSchemaKafkaSerializer<Object>();
        };
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Deserializer<Object> deserializer(String format) {
        return (Deserializer) switch (format) {
            case "avro" -> new AvroKafkaDeserializer<Object>();
            case "protobuf" -> new ProtobufKafkaDeserializer<Message>();
            default -> new JsonSchemaKafkaDeserializer<Object>();
        };
    }

    private static Object value(String format, JsonNode type, JsonNode value) throws Exception {
        switch (format) {
            case "avro":
                Schema schema = new Schema.Parser().parse(type.toString());
                return new GenericDatumReader<>(schema)
                        .read(null, DecoderFactory.get().jsonDecoder(schema, value.toString()));
            case "protobuf":
                DynamicMessage.Builder message = DynamicMessage.newBuilder(descriptor(type));
                JsonFormat.parser().merge(value.toString(), message);
                return message.build();
            default:
                return value;
        }
    }

    private static Descriptor descriptor(JsonNode type) throws Exception {
        byte[] file = HexFormat.of().parseHex(type.get("file").asText());
        return FileDescriptor.buildFrom(FileDescriptorProto.parseFrom(file), new FileDescriptor[0])
                .findMessageTypeByName(type.get("name").asText());
    }

    private static JsonNode json(Object value) throws Exception {
        if (value instanceof Message) {
            return JSON.readTree(JsonFormat.printer().print((Message) value));
        }
        return value instanceof JsonNode ? (JsonNode) value : JSON.readTree(value.toString());
    }
}
