import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Reads lines of writer schema, reader schema and datum (hex), separated by tabs; writes what Java makes of each datum,
 * written again with the reader's schema, or the name of the exception.
 */
public class AvroResolution {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            String result;
            try {
                result = "\"result\":\"" + resolve(parts[0], parts[1], parts[2]) + "\"";
            } catch (RuntimeException | java.io.IOException e) {
                result = "\"error\":\"" + e.getClass().getSimpleName() + "\"";
            }
            System.out.println("{\"writer\":" + parts[0] + ",\"reader\":" + parts[1] + ",\"hex\":\"" + parts[2] + "\"," + result + "}");
        }
    }

    static String resolve(String writerText, String readerText, String hex) throws java.io.IOException {
        Schema writer = new Schema.Parser().parse(writerText);
        Schema reader = new Schema.Parser().parse(readerText);
        byte[] data = new byte[hex.length() / 2];
        for (int i = 0; i < data.length; i++) data[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        Object datum = new GenericDatumReader<>(writer, reader).read(null, DecoderFactory.get().binaryDecoder(data, null));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<Object>(reader).write(datum, encoder);
        encoder.flush();
        StringBuilder text = new StringBuilder();
        for (byte b : out.toByteArray()) text.append(String.format("%02x", b));
        return text.toString();
    }
}
