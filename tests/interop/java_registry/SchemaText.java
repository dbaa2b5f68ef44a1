import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;

/** Prints the full name and the text of each Avro schema that it reads, one a line; an empty line for none. */
public final class SchemaText {
    private SchemaText() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(text(line));
        }
    }

    private static String text(String json) {
        try {
            Schema schema = new Schema.Parser().setValidateDefaults(false).parse(json);
            return schema.getFullName() + "\t" + schema;
        } catch (org.apache.avro.SchemaParseException | org.apache.avro.AvroTypeException error) {
            return "";
        }
    }
}
