import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Reads events in hex from standard input, one a line, as Pravega's JavaSerializer does; prints for each what Java sees
 * in it, and whether Java would write the same bytes.
 */
public final class Verify {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.append(answer(HexFormat.of().parseHex(line))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(byte[] event) {
        try {
            Object value;
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(event))) {
                value = in.readObject();
                if (in.read() >= 0) {
                    return "{\"error\":\"bytes after the object\"}";
                }
            }
            return "{\"value\":" + Canonical.of(value) + ",\"identical\":" + Arrays.equals(event, write(value)) + "}";
        } catch (Exception | StackOverflowError error) {
            return "{\"error\":" + Canonical.quote(error.toString()) + "}";
        }
    }

    static byte[] write(Object value) throws java.io.IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(value);
        }
        return bytes.toByteArray();
    }
}
