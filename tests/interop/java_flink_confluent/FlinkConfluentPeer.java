import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.flink.avro.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.avro.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumReader;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.avro.shaded.org.apache.avro.io.DecoderFactory;
import org.apache.flink.formats.avro.RegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.RegistryAvroSerializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;

/**
 * Writes and reads Avro events with Flink's schemas for Confluent's registry, which use Confluent's client.
 *
 * <p>Each line of the input is a request: {@code do} is write or read, with the registry's address, a subject, an Avro
 * schema and values. The values are JSON, the events hexadecimal. Each line of the output is a JSON object with the
 * results.
 */
public final class FlinkConfluentPeer {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        System.out.println("{\"ready\": \"flink-avro-confluent-registry\"}");
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
        Schema schema = new Schema.Parser().parse(call.get("schema").toString());
        String uri = call.get("uri").asText();
        List<Object> results = new ArrayList<>();
        if (call.get("do").asText().equals("write")) {
            RegistryAvroSerializationSchema<GenericRecord> writer =
                    ConfluentRegistryAvroSerializationSchema.forGeneric(call.get("subject").asText(), schema, uri);
            GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
            for (JsonNode value : call.get("values")) {
                GenericRecord record =
                        reader.read(null, DecoderFactory.get().jsonDecoder(schema, value.toString()));
                results.add(HexFormat.of().formatHex(writer.serialize(record)));
            }
        } else {
            RegistryAvroDeserializationSchema<GenericRecord> reader =
                    ConfluentRegistryAvroDeserializationSchema.forGeneric(schema, uri);
            for (JsonNode event : call.get("values")) {
                results.add(JSON.readTree(reader.deserialize(HexFormat.of().parseHex(event.asText())).toString()));
            }
        }
        return results;
    }
}
