import com.fasterxml.jackson.databind.ObjectMapper;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.common.hash.HashHelper;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** Writes text_golden.jsonl: what Java makes of malformed UTF-8, lone surrogates, doubles, JSON and routing keys. */
public class TextGolden {
    static final Random RANDOM = new Random(20);
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    static String hex(byte[] bytes) {
        StringBuilder s = new StringBuilder();
        for (byte b : bytes) s.append(String.format("%02x", b));
        return s.toString();
    }

    /** UTF-16LE that keeps lone surrogates, which Java's own encoder replaces. */
    static byte[] utf16(String text) {
        ByteBuffer b = ByteBuffer.allocate(2 * text.length()).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        for (char c : text.toCharArray()) b.putChar(c);
        return b.array();
    }

    public static void main(String[] args) throws Exception {
        malformed();
        surrogates();
        numbers();
        json();
        routing();
        OUT.flush();
    }

    static void malformed() {
        int[] leads = {0x41, 0x80, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xf8, 0xff,
            0x8f, 0x90, 0x9f, 0xa0, 0x00, 0x7f};
        UTF8StringSerializer serializer = new UTF8StringSerializer();
        for (int i = 0; i < 2000; i++) {
            byte[] data = new byte[1 + RANDOM.nextInt(7)];
            for (int k = 0; k < data.length; k++) data[k] = (byte) leads[RANDOM.nextInt(leads.length)];
            String text = serializer.deserialize(ByteBuffer.wrap(data));
            OUT.printf("{\"kind\":\"utf8_decode\",\"hex\":\"%s\",\"utf16le\":\"%s\"}%n", hex(data), hex(utf16(text)));
        }
    }

    static void surrogates() {
        char[] pool = {'a', '\u00e9', '\u20ac', '\ud83d', '\ude00', '\udfff', '\ud800', '\0'};
        UTF8StringSerializer serializer = new UTF8StringSerializer();
        for (int i = 0; i < 300; i++) {
            char[] text = new char[RANDOM.nextInt(6)];
            for (int k = 0; k < text.length; k++) text[k] = pool[RANDOM.nextInt(pool.length)];
            ByteBuffer data = serializer.serialize(new String(text));
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            OUT.printf("{\"kind\":\"utf8_encode\",\"utf16le\":\"%s\",\"hex\":\"%s\"}%n", hex(utf16(new String(text))), hex(bytes));
        }
    }

    static void numbers() {
        double[] fixed = {0.0, -0.0, 1.0, 0.1, 0.001, 0.00099999, 1e-3, 9999999.0, 1e7, 1.0E10, 123456789.125, 1e16, 1e17, 1e21,
            1e22, 1e23, 2e23, 5e-324, Double.MIN_NORMAL, Double.MAX_VALUE, 1.0 / 3, 0.30000000000000004, 100, 1e5, 1234567.5};
        List<Double> all = new ArrayList<>();
        for (double d : fixed) { all.add(d); all.add(-d); }
        for (int i = 0; i < 600; i++) all.add(Double.longBitsToDouble(RANDOM.nextLong()));
        for (int i = 0; i < 600; i++) all.add((RANDOM.nextInt(2000000) - 1000000) / Math.pow(10, RANDOM.nextInt(12)));
        for (double d : all) if (!Double.isNaN(d))
            OUT.printf("{\"kind\":\"double\",\"bits\":\"%016x\",\"text\":\"%s\"}%n", Double.doubleToRawLongBits(d), d);
        for (int i = 0; i < 600; i++) {
            float f = i % 2 == 0 ? Float.intBitsToFloat(RANDOM.nextInt()) : (RANDOM.nextInt(200000) - 100000) / (float) Math.pow(10, RANDOM.nextInt(8));
            if (!Float.isNaN(f)) OUT.printf("{\"kind\":\"float\",\"bits\":\"%08x\",\"text\":\"%s\"}%n", Float.floatToRawIntBits(f), f);
        }
    }

    static void json() throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        StringBuilder every = new StringBuilder();
        for (char c = 0; c < 0x180; c++) every.append(c);
        List<Object> values = new ArrayList<>(Arrays.asList(every.toString(), "a\u2028\u2029\ufeff\uffff\ud83d\ude00/\"\\", null, true, false, 0, -1,
            Long.MIN_VALUE, new BigInteger("123456789012345678901234567890"), 2.0, 1.0E10, 0.30000000000000004, Double.NaN,
            Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -0.0, new BigDecimal("1E+3"), new BigDecimal("0.10"), new BigDecimal("1E-10"),
            new BigDecimal("-12345678901234567890.123"), new byte[] {0, 1, 2, (byte) 0xff}, new byte[0], List.of(), Map.of(),
            Arrays.asList(1, null, "x", List.of(1.5))));
        Map<Object, Object> map = new LinkedHashMap<>();
        map.put("b", 1); map.put("a", null); map.put("\ud83d\ude00\"", Map.of("x", List.of(true)));
        values.add(map);
        Map<Object, Object> keys = new LinkedHashMap<>();
        keys.put(1, "int"); keys.put(true, "bool"); keys.put(2.0, "double"); keys.put(-5L, "long");
        values.add(keys);
        for (Object value : values)
            OUT.printf("{\"kind\":\"json\",\"java\":\"%s\",\"hex\":\"%s\"}%n", value == null ? "null" : value.getClass().getSimpleName(), hex(mapper.writeValueAsBytes(value)));
    }

    static void routing() {
        HashHelper helper = HashHelper.seededWith("EventRouter");
        String[] parts = {"a", "key", "\u00e9", "\u043a\u043b\u044e\u0447", "\u20ac", "\ud83d\ude00", "\ud800", "\udc00", "0", "-", "\0", "zzzzzzzzzzzzzzzzz"};
        for (int i = 0; i < 1500; i++) {
            StringBuilder key = new StringBuilder();
            for (int k = RANDOM.nextInt(12); k > 0; k--) key.append(parts[RANDOM.nextInt(parts.length)]);
            if (i == 0) key.setLength(0);
            OUT.printf("{\"kind\":\"routing\",\"utf16le\":\"%s\",\"bits\":\"%016x\"}%n", hex(utf16(key.toString())),
                Double.doubleToRawLongBits(helper.hashToRange(key.toString())));
        }
    }
}
