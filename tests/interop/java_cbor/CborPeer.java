import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.dataformat.cbor.CBORFactory;
import com.fasterxml.jackson.dataformat.cbor.CBORGenerator;
import com.fasterxml.jackson.dataformat.cbor.CBORParser;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Date;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;

/**
 * CBOR by Jackson: {@code write FILE COUNT text|numbers} makes random records, {@code read FILE} reads the events of a
 * file, in hexadecimal digits. Both print what each record holds as a line of JSON, of which all numbers are text.
 */
public final class CborPeer {
    public static final class Event {
        public long id;
        public int small;
        public Double x;
        public Float f;
        public Boolean ok;
        public String name;
        public BigInteger big;
        public BigDecimal price;
        public byte[] data;
        public UUID key;
        public Instant at;
        public LocalDate day;
        public LocalDateTime local;
        public Date date;
        public List<String> tags;
        public Map<String, Integer> counts;
        public Event inner;
    }

    private static ObjectMapper mapper(boolean numbers) {
        // Without these, Jackson writes and reads negative numbers beyond 64 bits one off what the standard says.
        CBORFactory factory = CBORFactory.builder()
                .enable(CBORGenerator.Feature.ENCODE_USING_STANDARD_NEGATIVE_BIGINT_ENCODING)
                .enable(CBORParser.Feature.DECODE_USING_STANDARD_NEGATIVE_BIGINT_ENCODING)
                .build();
        return new ObjectMapper(factory).registerModule(new JavaTimeModule())
                .configure(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS, numbers);
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        StringBuilder lines = new StringBuilder();
        if (args[0].equals("write")) {
            ObjectMapper cbor = mapper(args[3].equals("numbers"));
            Random source = new Random(17);
            List<String> events = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(args[2]); i++) {
                Event event = random(source, 2);
                events.add(HexFormat.of().formatHex(cbor.writeValueAsBytes(event)));
                lines.append(json.writeValueAsString(told(json, event))).append('\n');
            }
            Files.write(Path.of(args[1]), events);
        } else {
            ObjectMapper cbor = mapper(true);
            for (String event : Files.readAllLines(Path.of(args[1]))) {
                Event read = cbor.readValue(HexFormat.of().parseHex(event), Event.class);
                lines.append(json.writeValueAsString(told(json, read))).append('\n');
            }
        }
        System.out.print(lines);
    }

    private static Event random(Random source, int depth) {
        Event made = new Event();
        made.id = source.nextLong() >> source.nextInt(64);
        made.small = source.nextInt() >> source.nextInt(32);
        made.x = source.nextInt(9) == 0 ? Double.NEGATIVE_INFINITY : source.nextGaussian() * 1e5;
        made.f = source.nextBoolean() ? null : source.nextFloat();
        made.ok = source.nextBoolean() ? null : source.nextBoolean();
        made.name = new String[] {null, "", "sensor ü€😀", "x".repeat(source.nextInt(400))}[source.nextInt(4)];
        made.big = new BigInteger(1 + source.nextInt(120), source);
        if (source.nextBoolean()) {
            made.big = made.big.negate();
        }
        made.price = new BigDecimal(new BigInteger(1 + source.nextInt(90), source), source.nextInt(11));
        if (source.nextBoolean()) {
            made.price = made.price.negate();
        }
        made.data = new byte[source.nextInt(300)];
        source.nextBytes(made.data);
        made.key = new UUID(source.nextLong(), source.nextLong());
        made.at = Instant.ofEpochSecond(source.nextInt() * 20L, source.nextInt(3) * 1000L * source.nextInt(333333));
        made.day = LocalDate.ofEpochDay(source.nextInt() >> 12);
        made.local = LocalDateTime.ofEpochSecond(source.nextInt() * 20L, source.nextInt(2) * 120_000_000, ZoneOffset.UTC);
        made.date = source.nextBoolean() ? null : new Date(source.nextInt() * 1000L + 7);
        made.tags = new ArrayList<>();
        made.counts = new LinkedHashMap<>();
        for (int i = source.nextInt(4); i > 0; i--) {
            made.tags.add(i == 2 ? null : "tag " + i);
            made.counts.put("k" + i, source.nextInt());
        }
        made.inner = depth > 0 && source.nextBoolean() ? random(source, depth - 1) : null;
        return made;
    }

    private static ObjectNode told(ObjectMapper json, Event event) {
        if (event == null) {
            return null;
        }
        ObjectNode told = json.createObjectNode();
        told.put("id", Long.toString(event.id)).put("small", Integer.toString(event.small));
        told.put("x", text(event.x)).put("f", text(event.f)).put("ok", text(event.ok)).put("name", event.name);
        told.put("big", text(event.big)).put("price", text(event.price)).put("key", text(event.key));
        told.put("data", event.data == null ? null : HexFormat.of().formatHex(event.data));
        told.put("at", event.at == null ? null : micros(event.at.getEpochSecond(), event.at.getNano()));
        told.put("day", event.day == null ? null : Long.toString(event.day.toEpochDay()));
        told.put("local", event.local == null ? null
                : micros(event.local.toEpochSecond(ZoneOffset.UTC), event.local.getNano()));
        told.put("date", event.date == null ? null : Long.toString(event.date.getTime()));
        told.set("tags", json.valueToTree(event.tags));
        told.set("counts", json.valueToTree(event.counts));
        told.set("inner", told(json, event.inner));
        return told;
    }

    private static String text(Object value) {
        return value == null ? null : value.toString();
    }

    private static String micros(long seconds, int nanos) {
        return Long.toString(seconds * 1_000_000 + nanos / 1000);
    }
}
