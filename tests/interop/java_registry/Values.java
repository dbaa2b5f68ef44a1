import com.example.avro.Pulse;
import com.example.avro.Sensor;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.rpc.ErrorInfo;
import com.google.type.Money;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;

/** The value of each type with a number; Python makes the same ones by the same rules. */
final class Values {
    static final ObjectMapper MAPPER = new ObjectMapper();

    static final Schema RICH = new Schema.Parser().parse("""
        {"type":"record","name":"Rich","namespace":"com.example.rich","doc":"all kinds","fields":[
        {"name":"level","type":{"type":"enum","name":"Level","symbols":["LOW","MID","HIGH"]}},
        {"name":"msg","type":["null","string"],"default":null,"aliases":["message"]},
        {"name":"tags","type":{"type":"array","items":"string"},"default":[]},
        {"name":"attrs","type":{"type":"map","values":"double"}},
        {"name":"digest","type":{"type":"fixed","name":"D4","size":4}},
        {"name":"inner","type":{"type":"record","name":"Inner","fields":[
        {"name":"a","type":"float"},{"name":"b","type":["null","long","string"]}]}},
        {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
        {"name":"day","type":{"type":"int","logicalType":"date"}},
        {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}}]}""");

    private static final String A = "{\"name\":\"a\",\"type\":\"int\"}";
    private static final String B = ",{\"name\":\"b\",\"type\":\"string\",\"default\":\"none\"}";
    private static final String C = ",{\"name\":\"c\",\"type\":\"string\",\"default\":\"-\"}";

    /** Three versions: a field added with a default, one promoted, one removed. */
    static final List<Schema> VERSIONS = List.of(
        version(A + C), version(A + C + B), version("{\"name\":\"a\",\"type\":\"long\"}" + B));

    /** A plain class, for Jackson and for Avro's reflection. */
    public static class User {
        public String name;
        public int age;
        public Double score;
        public List<String> tags;
        public Map<String, Integer> counts;
        public boolean active;
    }

    /** One that holds another. */
    public static class Order {
        public long orderId;
        public User user;
        public List<String> items;
    }

    /** For Avro's reflection, which has no null by itself. */
    public static class Point {
        public int x;
        public double y;
        public String label;
    }

    private Values() {
    }

    private static Schema version(String fields) {
        String record = "{\"type\":\"record\",\"name\":\"Evo\",\"namespace\":\"com.example\",\"fields\":[";
        return new Schema.Parser().parse(record + fields + "]}");
    }

    static Sensor sensor(int i) {
        String name = "sensor-" + i + (i % 3 == 0 ? "é😀" : "");
        boolean even = i % 2 == 0;
        return new Sensor(i * 1_000_003L * (even ? 1 : -1), name, i * 0.37 - 75, i * 7919 % 100_000 - 5000, even,
            i % 5 == 0 ? null : "n" + i);
    }

    static Pulse pulse(int i) {
        List<Integer> beats = new ArrayList<>();
        for (int beat = 0; beat < i % 4; beat++) {
            beats.add(i * beat - 3);
        }
        return new Pulse(1_700_000_000_000L + i, beats);
    }

    static GenericData.Record rich(int i) {
        GenericData.Record inner = new GenericData.Record(RICH.getField("inner").schema());
        inner.put("a", i * 0.5f);
        inner.put("b", i % 3 == 0 ? null : i % 3 == 1 ? (Object) (i * 5_000_000_000L) : "b" + i);
        GenericData.Record record = new GenericData.Record(RICH);
        String level = List.of("LOW", "MID", "HIGH").get(i % 3);
        record.put("level", new GenericData.EnumSymbol(RICH.getField("level").schema(), level));
        record.put("msg", i % 2 == 0 ? null : "msg " + i);
        record.put("tags", i % 4 == 0 ? List.of() : List.of("t" + i, "é"));
        record.put("attrs", Map.of("k" + i, i / 8.0));
        record.put("digest", new GenericData.Fixed(RICH.getField("digest").schema(), new byte[] {1, 2, (byte) i, -1}));
        record.put("inner", inner);
        record.put("price", ByteBuffer.wrap(java.math.BigInteger.valueOf(i * 101L - 5000).toByteArray()));
        record.put("day", i - 1000);
        record.put("at", i * 1_000_000_007L);
        return record;
    }

    static GenericData.Record version(int i) {
        Schema schema = VERSIONS.get(i % 3);
        GenericData.Record record = new GenericData.Record(schema);
        record.put("a", i % 3 == 2 ? (Object) (i * 10_000_000_000L) : (Object) (i * 3));
        if (i % 3 != 2) {
            record.put("c", "c" + i);
        }
        if (i % 3 != 0) {
            record.put("b", "b" + i);
        }
        return record;
    }

    static User user(int i) {
        User user = new User();
        user.name = "u" + i + "é😀";
        user.age = 20 + i % 70;
        user.score = i % 2 == 0 ? null : Double.valueOf(i * 0.1);
        user.tags = List.of("a", "b\"\\" + i);
        user.counts = Map.of("c" + i, i);
        user.active = i % 2 == 1;
        return user;
    }

    static Order order(int i) {
        Order order = new Order();
        order.orderId = i * 1_000_000_007L;
        order.user = user(i + 1);
        order.items = i % 3 == 0 ? List.of() : List.of("i1", "i" + i);
        return order;
    }

    static Point point(int i) {
        Point point = new Point();
        point.x = -i;
        point.y = i / 3.0;
        point.label = "p" + i;
        return point;
    }

    static Money money(int i) {
        Money.Builder money = Money.newBuilder().setCurrencyCode(i % 2 == 0 ? "EUR" : "");
        return money.setUnits(i * 1_000_003L * (i % 3 - 1)).setNanos(i % 1000).build();
    }

    static ErrorInfo errorInfo(int i) {
        ErrorInfo.Builder info = ErrorInfo.newBuilder().setReason("reason " + i + "é").setDomain("example.com");
        return (i % 3 == 0 ? info : info.putMetadata("k" + i, "v" + i)).build();
    }

    static DynamicMessage alarm(Descriptor type, int i) {
        Descriptor innerType = type.findNestedTypeByName("Inner");
        DynamicMessage.Builder inner = DynamicMessage.newBuilder(innerType);
        inner.setField(innerType.findFieldByName("a"), -i).setField(innerType.findFieldByName("b"), 2L * i);
        FieldDescriptor packed = innerType.findFieldByName("packed");
        inner.addRepeatedField(packed, 1).addRepeatedField(packed, 300 + i);
        DynamicMessage.Builder alarm = DynamicMessage.newBuilder(type);
        EnumDescriptor levels = type.getFile().findEnumTypeByName("LevelP");
        alarm.setField(type.findFieldByName("level"), levels.findValueByNumber(i % 3));
        if (i % 2 == 1) {
            alarm.setField(type.findFieldByName("msg"), i % 4 == 1 ? "" : "m" + i);
        }
        FieldDescriptor tags = type.findFieldByName("tags");
        alarm.addRepeatedField(tags, "p" + i).addRepeatedField(tags, "");
        Descriptor entryType = type.findNestedTypeByName("AttrsEntry");
        alarm.addRepeatedField(type.findFieldByName("attrs"), DynamicMessage.newBuilder(entryType)
            .setField(entryType.findFieldByName("key"), "k" + i)
            .setField(entryType.findFieldByName("value"), i / 4.0).build());
        alarm.setField(type.findFieldByName("digest"), ByteString.copyFrom(new byte[] {(byte) i, -1}));
        alarm.setField(type.findFieldByName("inner"), inner.build());
        if (i % 3 == 0) {
            alarm.setField(type.findFieldByName("s"), "ch" + i);
        } else if (i % 3 == 1) {
            alarm.setField(type.findFieldByName("n"), (long) -i);
        }
        return alarm.build();
    }

    static Descriptor alarmType(FileDescriptorSet files) throws Exception {
        return FileDescriptor.buildFrom(files.getFile(0), new FileDescriptor[0]).findMessageTypeByName("AlarmP");
    }

    static String line(int i) {
        return "line " + i + " é";
    }
}
