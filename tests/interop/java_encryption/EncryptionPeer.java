import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * Answers each line {@code open|seal key-encryption-key wrapped-key key-id stream field value} with the value, or with
 * {@code error}. Keys and values are Base64.
 */
public final class EncryptionPeer {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] given) {
        Base64.Decoder decoder = Base64.getDecoder();
        try {
            byte[] key = FieldCipher.unwrap(decoder.decode(given[1]), decoder.decode(given[2]));
            FieldCipher cipher = new FieldCipher(key, Integer.parseInt(given[3]), given[4], given[5]);
            byte[] value = decoder.decode(given[6]);
            return Base64.getEncoder().encodeToString(given[0].equals("open") ? cipher.open(value) : cipher.seal(value));
        } catch (Exception error) {
            return "error";
        }
    }
}
