package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.sql.types.StructType;

/** Decoder of Avro events. Its steps follow the bytes of the writer, and fill the columns of the reader. */
final class AvroDecoder extends Decoder {
  private static final int MOST_VARINT = 10;

  private final Step root;

  AvroDecoder(JsonNode plan, StructType wanted) {
    super(wanted, plan.get("largest").asInt());
    JsonNode step = plan.get("root");
    root = step(step, plan.get("record").asBoolean() ? columns : columns.child("value"));
  }

  @Override
  void event() {
    root.read();
    if (at == end) {
      return;
    }
    if (at > end) {
      throw doubt();
    }
    while (at < end) { // some writers pad with zeros
      if (data[at++] != 0) {
        throw doubt();
      }
    }
  }

  /** Reads a value at {@code at}. A step without a column checks the value as one with a column does. */
  private abstract static class Step {
    abstract void read();
  }

  private Step step(JsonNode plan, Vectors.Vector to) {
    return switch (plan.get("op").asText()) {
      case "null" -> new Null(to);
      case "boolean" -> new Flag((Vectors.Booleans) to);
      case "int", "long" -> integer(plan, to);
      case "float" -> new FloatNumber(to);
      case "double" -> new DoubleNumber((Vectors.Doubles) to);
      case "text" -> new Text(plan, (Vectors.Texts) to);
      case "decimal" -> new DecimalNumber(plan, (Vectors.Decimals) to);
      case "enum" -> new Symbol(plan, (Vectors.Texts) to);
      case "array" -> new Items(plan, (Vectors.Lists) to);
      case "map" -> new Entries(plan, (Vectors.Lists) to);
      case "record" -> new Fields(plan, (Vectors.Structs) to);
      case "union" -> plan.has("members") ? new Members(plan, (Vectors.Structs) to) : new Branches(plan, to);
      default -> throw new IllegalArgumentException(plan.toString());
    };
  }

  // ---- numbers ----

  /** Read a number of up to 64 bits. */
  private long number() {
    byte next = data[at++];
    long value = next & 0x7f;
    if (next < 0) {
      value = longNumber(value);
    }
    return (value >>> 1) ^ -(value & 1);
  }

  private long longNumber(long low) {
    long value = low;
    for (int i = 1; i < MOST_VARINT; i++) {
      byte next = data[at++];
      value |= (next & 0x7fL) << (7 * i);
      if (next >= 0) {
        if (i == MOST_VARINT - 1 && next > 1) {
          throw doubt();
        }
        return value;
      }
    }
    throw doubt();
  }

  private int length() {
    long length = number();
    if (length < 0 || length > end - at) {
      throw doubt();
    }
    return (int) length;
  }

  private Step integer(JsonNode plan, Vectors.Vector to) {
    boolean narrow = plan.get("op").asText().equals("int");
    boolean plain = !plan.has("times") && !plan.has("below");
    if (plain && narrow && to instanceof Vectors.Ints ints) {
      return new PlainInt(ints);
    }
    if (plain && !narrow && to instanceof Vectors.Longs longs) {
      return new PlainLong(longs);
    }
    return new OtherInteger(plan, narrow, to);
  }

  private final class PlainInt extends Step {
    private final Vectors.Ints to;

    PlainInt(Vectors.Ints to) {
      this.to = to;
    }

    @Override
    void read() {
      long value = number();
      if (value != (int) value) {
        throw doubt();
      }
      to.add(value);
    }
  }

  private final class PlainLong extends Step {
    private final Vectors.Longs to;

    PlainLong(Vectors.Longs to) {
      this.to = to;
    }

    @Override
    void read() {
      to.add(number());
    }
  }

  /** Any other int or long: in another column, with another unit, with bounds, or without a column. */
  private final class OtherInteger extends Step {
    private final Vectors.Vector to;
    private final boolean narrow;
    private final long times;
    private final long below;

    OtherInteger(JsonNode plan, boolean narrow, Vectors.Vector to) {
      this.to = to;
      this.narrow = narrow;
      times = plan.path("times").asLong(1);
      below = plan.path("below").asLong(0);
    }

    @Override
    void read() {
      long value = number();
      if (narrow && value != (int) value) {
        throw doubt();
      }
      if (below > 0 && (value < 0 || value >= below)) {
        throw doubt();
      }
      if (times > 1) {
        long most = Long.MAX_VALUE / times;
        if (value > most || value < -most) {
          throw doubt();
        }
        value *= times;
      }
      if (to != null) {
        to.add(value);
      }
    }
  }

  private final class FloatNumber extends Step {
    private final Vectors.Floats floats;
    private final Vectors.Doubles doubles;

    FloatNumber(Vectors.Vector to) {
      floats = to instanceof Vectors.Floats column ? column : null;
      doubles = to instanceof Vectors.Doubles column ? column : null;
    }

    @Override
    void read() {
      float value = Float.intBitsToFloat(fixed32());
      if (floats != null) {
        floats.add(value);
      } else if (doubles != null) {
        doubles.add((double) value);
      }
    }
  }

  private final class DoubleNumber extends Step {
    private final Vectors.Doubles to;

    DoubleNumber(Vectors.Doubles to) {
      this.to = to;
    }

    @Override
    void read() {
      double value = Double.longBitsToDouble(fixed64());
      if (to != null) {
        to.add(value);
      }
    }
  }

  private final class DecimalNumber extends Step {
    private final Vectors.Decimals to;
    private final int size;
    private final boolean wide;
    private final BigInteger bound;

    DecimalNumber(JsonNode plan, Vectors.Decimals to) {
      this.to = to;
      size = plan.path("size").asInt(-1);
      bound = BigInteger.TEN.pow(plan.get("precision").asInt());
      wide = plan.get("precision").asInt() > 18;
    }

    @Override
    void read() {
      int length = size < 0 ? length() : size;
      if (length < 1 || length > end - at) {
        throw doubt();
      }
      if (length <= 8) {
        long value = data[at];
        for (int i = 1; i < length; i++) {
          value = value << 8 | data[at + i] & 0xff;
        }
        if (!wide && (value >= bound.longValue() || value <= -bound.longValue())) {
          throw doubt();
        }
        if (to != null) {
          to.add(value);
        }
      } else {
        BigInteger value = new BigInteger(data, at, length);
        if (value.abs().compareTo(bound) >= 0) {
          throw doubt();
        }
        if (to != null && wide) {
          to.add(value);
        } else if (to != null) {
          to.add(value.longValue());
        }
      }
      at += length;
    }
  }

  // ---- other single values ----

  private static final class Null extends Step {
    private final Vectors.Vector to;

    Null(Vectors.Vector to) {
      this.to = to;
    }

    @Override
    void read() {
      if (to != null) {
        to.addNull();
      }
    }
  }

  private final class Flag extends Step {
    private final Vectors.Booleans to;

    Flag(Vectors.Booleans to) {
      this.to = to;
    }

    @Override
    void read() {
      byte value = data[at++];
      if (value != 0 && value != 1) {
        throw doubt();
      }
      if (to != null) {
        to.add(value == 1);
      }
    }
  }

  private final class Text extends Step {
    private final Vectors.Texts to;
    private final int size;
    private final boolean utf8;
    private final boolean uuid;

    Text(JsonNode plan, Vectors.Texts to) {
      this.to = to;
      size = plan.path("size").asInt(-1);
      utf8 = plan.path("utf8").asBoolean();
      uuid = plan.path("uuid").asBoolean();
    }

    @Override
    void read() {
      int length = size < 0 ? length() : size;
      if (length > end - at) {
        throw doubt();
      }
      if (utf8) {
        checkText(at, length);
      }
      if (uuid) {
        checkUuid(at, length);
      }
      if (to != null) {
        to.add(at, length);
      }
      at += length;
    }
  }

  private void checkUuid(int start, int length) {
    if (length != 36) {
      throw doubt();
    }
    for (int i = 0; i < length; i++) {
      int next = data[start + i];
      boolean valid = i == 8 || i == 13 || i == 18 || i == 23 ? next == '-' : Character.digit(next, 16) >= 0;
      if (!valid) {
        throw doubt();
      }
    }
  }

  private final class Symbol extends Step {
    private final Vectors.Texts to;
    private final int[] starts;
    private final int[] lengths;

    Symbol(JsonNode plan, Vectors.Texts to) {
      this.to = to;
      JsonNode symbols = plan.get("symbols");
      starts = new int[symbols.size()];
      lengths = new int[symbols.size()];
      for (int i = 0; i < starts.length; i++) {
        byte[] symbol = symbols.get(i).asText().getBytes(StandardCharsets.UTF_8);
        starts[i] = bytes.constant(symbol);
        lengths[i] = symbols.get(i).isNull() ? -1 : symbol.length;
      }
    }

    @Override
    void read() {
      long index = number();
      if (index < 0 || index >= starts.length || lengths[(int) index] < 0) {
        throw doubt();
      }
      if (to != null) {
        to.add(starts[(int) index], lengths[(int) index]);
      }
    }
  }

  // ---- nested values ----

  /** Return the number of items in the next block, or 0 at the end. Every item has at least one byte. */
  private int block() {
    long count = number();
    if (count < 0) {
      number(); // the size of the block in bytes
      count = -count;
    }
    if (count < 0 || count > end - at) {
      throw doubt();
    }
    return (int) count;
  }

  private final class Items extends Step {
    private final Vectors.Lists to;
    private final Step item;

    Items(JsonNode plan, Vectors.Lists to) {
      this.to = to;
      item = step(plan.get("item"), to == null ? null : to.items);
    }

    @Override
    void read() {
      int first = to == null ? 0 : to.items.count;
      for (int left = block(); left > 0; left = block()) {
        while (left-- > 0) {
          item.read();
        }
      }
      if (to != null) {
        to.addFrom(first);
      }
    }
  }

  private final class Entries extends Step {
    private final Vectors.Lists to;
    private final Vectors.Texts keys;
    private final Step value;

    Entries(JsonNode plan, Vectors.Lists to) {
      this.to = to;
      keys = to == null ? null : (Vectors.Texts) to.items;
      value = step(plan.get("value"), to == null ? null : to.values);
    }

    @Override
    void read() {
      int first = to == null ? 0 : keys.count;
      for (int left = block(); left > 0; left = block()) {
        while (left-- > 0) {
          int length = length();
          checkText(at, length);
          if (to != null) {
            keys.add(at, length);
          }
          at += length;
          value.read();
        }
      }
      if (to != null) {
        if (keys.repeats(keys.count - first)) {
          throw doubt(); // Python keeps the last value of a key
        }
        to.addFrom(first);
      }
    }
  }

  /** Fields in the order of the writer; those that it does not have are read from their defaults. */
  private final class Fields extends Step {
    private final Vectors.Structs to;
    private final Step[] fields;
    private final Step[] defaults;
    private final int[] defaultStarts;
    private final int[] defaultEnds;

    Fields(JsonNode plan, Vectors.Structs to) {
      this.to = to;
      fields = new Step[plan.get("fields").size()];
      for (int i = 0; i < fields.length; i++) {
        fields[i] = field(plan.get("fields").get(i));
      }
      defaults = new Step[plan.get("defaults").size()];
      defaultStarts = new int[defaults.length];
      defaultEnds = new int[defaults.length];
      for (int i = 0; i < defaults.length; i++) {
        byte[] value = Base64.getDecoder().decode(plan.get("defaults").get(i).get("data").asText());
        defaults[i] = field(plan.get("defaults").get(i));
        defaultStarts[i] = bytes.constant(value);
        defaultEnds[i] = defaultStarts[i] + value.length;
      }
    }

    private Step field(JsonNode plan) {
      boolean unused = to == null || plan.get("name").isNull();
      return step(plan.get("step"), unused ? null : to.child(plan.get("name").asText()));
    }

    @Override
    void read() {
      if (to != null) {
        to.add();
      }
      for (Step field : fields) {
        field.read();
      }
      if (defaults.length > 0) {
        int position = at;
        int stop = end;
        for (int i = 0; i < defaults.length; i++) {
          at = defaultStarts[i];
          end = defaultEnds[i];
          defaults[i].read();
        }
        at = position;
        end = stop;
      }
    }
  }

  /** Union that is a value or null to the reader. */
  private final class Branches extends Step {
    private final Step[] branches;

    Branches(JsonNode plan, Vectors.Vector to) {
      branches = new Step[plan.get("branches").size()];
      for (int i = 0; i < branches.length; i++) {
        JsonNode branch = plan.get("branches").get(i);
        branches[i] = branch.isNull() ? null : step(branch, to);
      }
    }

    @Override
    void read() {
      branches[branch(branches)].read();
    }
  }

  private int branch(Step[] branches) {
    long index = number();
    if (index < 0 || index >= branches.length || branches[(int) index] == null) {
      throw doubt();
    }
    return (int) index;
  }

  /** Union that is a struct of members to the reader. All members but one are null. */
  private final class Members extends Step {
    private final Vectors.Structs to;
    private final boolean indexed;
    private final Step[] branches;
    private final Vectors.Vector[] members;
    /** Member of each branch: null for a member that is not read. */
    private final Vectors.Vector[] chosen;
    private final boolean[] isNull;

    Members(JsonNode plan, Vectors.Structs to) {
      this.to = to;
      indexed = plan.get("indexed").asBoolean();
      int size = plan.get("members").asInt();
      Vectors.Vector[] all = new Vectors.Vector[size];
      for (int i = 0; i < size; i++) {
        all[i] = to == null ? null : to.child("member" + i);
      }
      members = Arrays.stream(all).filter(each -> each != null).toArray(Vectors.Vector[]::new);
      branches = new Step[plan.get("branches").size()];
      chosen = new Vectors.Vector[branches.length];
      isNull = new boolean[branches.length];
      for (int i = 0; i < branches.length; i++) {
        JsonNode branch = plan.get("branches").get(i);
        JsonNode member = plan.get("chosen").get(i);
        isNull[i] = member.isNull();
        chosen[i] = isNull[i] ? null : all[member.asInt()];
        branches[i] = branch.isNull() ? null : step(branch, chosen[i]);
      }
    }

    @Override
    void read() {
      int branch = indexed ? branch(branches) : 0;
      if (to != null && isNull[branch]) {
        to.addNull();
      } else if (to != null) {
        to.add();
        for (Vectors.Vector member : members) {
          if (member != chosen[branch]) {
            member.addNull();
          }
        }
      }
      branches[branch].read();
    }
  }
}
