package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Decoder of Protobuf events.
 *
 * <p>Fields may have any order. A field that occurs twice without being repeated, two members of a oneof, and groups are
 * left to Python.
 */
final class ProtobufDecoder extends Decoder {
  private static final int VARINT = 0;
  private static final int FIXED64 = 1;
  private static final int DELIMITED = 2;
  private static final int FIXED32 = 5;
  private static final long MICROS = 1_000_000;
  /** Seconds whose microseconds surely fit 64 bits. */
  private static final long MOST_SECONDS = Long.MAX_VALUE / MICROS - 3000;

  private final Message root;

  ProtobufDecoder(JsonNode plan, Vectors.Structs columns) {
    super(plan, columns);
    root = new Message(plan.get("root"), columns);
  }

  @Override
  void event() {
    root.add();
  }

  // ---- the wire ----

  /** Read a tag of at most 32 bits, without needless bytes. */
  private int tag() {
    int start = at;
    long tag = varint();
    int size = at - start;
    doubtIf(tag < 8 || tag >>> 32 != 0 || size > 1 && tag >>> 7 * (size - 1) == 0);
    return (int) tag;
  }

  private int length() {
    int most = at + 5; // Google's parsers refuse more bytes
    long length = varint();
    doubtIf(at > most);
    return inEvent(length);
  }

  private void skip(int wire) {
    switch (wire) {
      case VARINT -> varint();
      case FIXED64 -> at += Long.BYTES;
      case DELIMITED -> at = length() + at; // after the bytes of the length
      case FIXED32 -> at += Integer.BYTES;
      default -> throw doubt();
    }
  }

  // ---- values ----

  /** Reads one value after its tag, and adds it to its column, if it has one. */
  private abstract static class Value {
    final int wire;
    final Vectors.Vector to;

    Value(int wire, Vectors.Vector to) {
      this.wire = wire;
      this.to = to;
    }

    abstract void read();

    /** Add the value that is not written. */
    void addDefault() {
      throw new IllegalStateException("a message has no default");
    }

    /** Read a value as a number in the order of the values, without adding it. */
    long order() {
      throw new IllegalStateException("a key of this type");
    }

    long orderOfZero() {
      return 0;
    }
  }

  private Value value(JsonNode plan, Vectors.Vector to) {
    String kind = plan.get("kind").asText();
    return switch (kind) {
      case "int32", "int64", "uint32", "sint32", "sint64" -> varint(kind, to);
      case "fixed32", "sfixed32", "sfixed64" -> fixed(kind, to);
      case "uint64", "fixed64" -> unsigned(kind, (Vectors.Decimals) to);
      case "bool" -> flag((Vectors.Booleans) to);
      case "float", "double" -> floating(kind, to);
      case "string", "bytes" -> new Text(kind, (Vectors.Texts) to);
      case "enum" -> new Symbol(plan, (Vectors.Texts) to);
      case "message" -> struct(plan, (Vectors.Structs) to);
      case "timestamp" -> timestamp((Vectors.Longs) to);
      case "wrapper" -> wrapper(plan, to);
      default -> throw new IllegalArgumentException(plan.toString());
    };
  }

  private abstract static class Numeric extends Value {
    Numeric(int wire, Vectors.Vector to) {
      super(wire, to);
    }

    @Override
    void addDefault() {
      store(to, 0L);
    }
  }

  private Value varint(String kind, Vectors.Vector column) {
    boolean zigzag = kind.startsWith("s");
    boolean narrow = kind.equals("int32");
    boolean unsigned = kind.equals("uint32") || kind.equals("sint32");
    return new Numeric(VARINT, column) {
      @Override
      long order() {
        long value = varint();
        // Google's parsers drop the other bits.
        doubtIf(narrow && value != (int) value || unsigned && value >>> 32 != 0);
        return zigzag ? value >>> 1 ^ -(value & 1) : value;
      }

      @Override
      void read() {
        long value = order();
        store(to, value);
      }
    };
  }

  private Value fixed(String kind, Vectors.Vector column) {
    boolean unsigned = kind.equals("fixed32");
    return new Numeric(kind.endsWith("64") ? FIXED64 : FIXED32, column) {
      @Override
      long order() {
        long value = wire == FIXED64 ? fixed64() : fixed32();
        return unsigned ? value & 0xffffffffL : value;
      }

      @Override
      void read() {
        long value = order();
        store(to, value);
      }
    };
  }

  private Value unsigned(String kind, Vectors.Decimals decimals) {
    return new Numeric(kind.equals("fixed64") ? FIXED64 : VARINT, decimals) {
      private long number() {
        return wire == FIXED64 ? fixed64() : varint();
      }

      @Override
      long order() {
        return number() ^ Long.MIN_VALUE;
      }

      @Override
      long orderOfZero() {
        return Long.MIN_VALUE;
      }

      @Override
      void read() {
        long value = number();
        if (decimals != null && value < 0) {
          decimals.add(new BigInteger(Long.toUnsignedString(value)));
        } else if (decimals != null) {
          decimals.add(value);
        }
      }
    };
  }

  private Value flag(Vectors.Booleans flags) {
    return new Value(VARINT, flags) {
      @Override
      long order() {
        long value = varint();
        doubtIf(value >>> 1 != 0);
        return value;
      }

      @Override
      void read() {
        long value = order();
        if (flags != null) {
          flags.add(value == 1);
        }
      }

      @Override
      void addDefault() {
        if (flags != null) {
          flags.add(false);
        }
      }
    };
  }

  private Value floating(String kind, Vectors.Vector column) {
    return new Numeric(kind.equals("float") ? FIXED32 : FIXED64, column) {
      @Override
      void read() {
        double value = wire == FIXED32 ? Float.intBitsToFloat(fixed32()) : Double.longBitsToDouble(fixed64());
        store(to, value);
      }
    };
  }

  private final class Text extends Value {
    private final Vectors.Texts texts;
    private final boolean utf8;

    Text(String kind, Vectors.Texts to) {
      super(DELIMITED, to);
      texts = to;
      utf8 = kind.equals("string");
    }

    @Override
    void read() {
      int length = length();
      if (utf8) {
        checkText(at, length);
      }
      take(texts, length);
    }

    @Override
    void addDefault() {
      if (texts != null) {
        texts.add(0, 0);
      }
    }
  }

  /** Enum: the text of its number's name. A number without a name is left to Python. */
  private final class Symbol extends Value {
    private final Vectors.Texts texts;
    private final Map<Long, int[]> names = new HashMap<>();
    /** Positions and lengths of the names of small numbers. */
    private final int[][] small = new int[64][];

    Symbol(JsonNode plan, Vectors.Texts to) {
      super(VARINT, to);
      texts = to;
      for (JsonNode each : plan.get("names")) {
        byte[] name = each.get(1).asText().getBytes(StandardCharsets.UTF_8);
        long number = each.get(0).asLong();
        int[] place = {bytes.constant(name), name.length};
        names.put(number, place);
        if (number >= 0 && number < small.length) {
          small[(int) number] = place;
        }
      }
    }

    private void add(long number) {
      int[] place = number >= 0 && number < small.length ? small[(int) number] : names.get(number);
      doubtIf(place == null);
      if (texts != null) {
        texts.add(place[0], place[1]);
      }
    }

    @Override
    void read() {
      add(varint());
    }

    @Override
    void addDefault() {
      add(0);
    }
  }

  // ---- messages ----

  private Value struct(JsonNode plan, Vectors.Structs to) {
    Message message = new Message(plan, to);
    return new Value(DELIMITED, to) {
      @Override
      void read() {
        int length = length();
        int outer = end;
        end = at + length;
        message.add();
        end = outer;
      }
    };
  }

  /** Google's wrapper of one value: its message is the value. */
  private Value wrapper(JsonNode plan, Vectors.Vector column) {
    Value value = value(plan.get("value"), column);
    return new Value(DELIMITED, column) {
      @Override
      void read() {
        int length = length();
        int outer = end;
        end = at + length;
        if (at == end) {
          value.addDefault();
        } else {
          doubtIf(tag() != (1 << 3 | value.wire));
          value.read();
        }
        doubtIf(at != end);
        end = outer;
      }
    };
  }

  /** Google's timestamp: seconds and nanoseconds, of which microseconds remain. */
  private Value timestamp(Vectors.Longs longs) {
    return new Value(DELIMITED, longs) {
      @Override
      void read() {
        int length = length();
        int stop = at + length;
        long seconds = 0;
        long nanos = 0;
        if (at < stop && data[at] == (1 << 3 | VARINT)) {
          at++;
          seconds = varint();
        }
        if (at < stop && data[at] == (2 << 3 | VARINT)) {
          at++;
          nanos = varint();
        }
        doubtIf(at != stop || nanos < 0 || nanos >= 1_000_000_000 || seconds > MOST_SECONDS || seconds < -MOST_SECONDS);
        store(longs, seconds * MICROS + nanos / 1000);
      }
    };
  }

  /** Fields of a message. */
  private final class Message {
    private final Vectors.Structs to;
    private final boolean unknownMatter;
    private final Field[] fields;
    /** Lists and maps, of {@code fields}. */
    private final Field[] lists;
    private final Field[] small = new Field[128];
    private final int[] oneofs;
    private int message;

    Message(JsonNode plan, Vectors.Structs to) {
      this.to = to;
      unknownMatter = plan.get("unknown_matter").asBoolean();
      oneofs = new int[plan.get("oneofs").asInt()];
      fields = new Field[plan.get("fields").size()];
      for (int i = 0; i < fields.length; i++) {
        JsonNode field = plan.get("fields").get(i);
        fields[i] = new Field(field, to == null ? null : to.child(field.get("name").asText()));
        if (fields[i].number < small.length) {
          small[fields[i].number] = fields[i];
        }
      }
      lists = Arrays.stream(fields).filter(each -> each.lists != null || each.entries != null).toArray(Field[]::new);
    }

    private Field field(int number) {
      if (number < small.length) {
        return small[number];
      }
      for (Field field : fields) {
        if (field.number == number) {
          return field;
        }
      }
      return null;
    }

    /** Read the fields up to {@code end}, and add a value to each column. */
    void add() {
      if (to != null) {
        to.add();
      }
      message++;
      for (Field field : lists) {
        field.begin();
      }
      while (at < end) {
        int tag = tag();
        Field field = field(tag >>> 3);
        if (field != null) {
          field.read(tag & 7, this);
        } else {
          doubtIf(unknownMatter);
          skip(tag & 7);
        }
      }
      doubtIf(at != end);
      for (Field field : fields) {
        field.finish(message);
      }
    }
  }

  private final class Field {
    private final int number;
    private final boolean repeated;
    private final boolean implicit;
    private final int oneof;
    private final Vectors.Vector to;
    private final Vectors.Lists lists;
    private final Value value;
    /** Null unless the field is a map. */
    private final Entries entries;
    /** Number of the last message that had the field; first item of the list. */
    private int seen;
    private int first;

    Field(JsonNode plan, Vectors.Vector to) {
      this.to = to;
      number = plan.get("number").asInt();
      repeated = plan.get("label").asText().equals("repeated");
      implicit = plan.get("label").asText().equals("implicit");
      oneof = plan.get("oneof").asInt();
      boolean isMap = plan.get("label").asText().equals("map");
      lists = repeated || isMap ? (Vectors.Lists) to : null;
      entries = isMap ? new Entries(plan.get("value"), lists) : null;
      value = isMap ? null : value(plan.get("value"), lists != null ? lists.items : repeated ? null : to);
    }

    void begin() {
      if (lists != null) {
        first = lists.items.count;
      }
      if (entries != null) {
        entries.count = 0;
      }
    }

    void read(int wire, Message message) {
      if (entries != null) {
        entries.note(wire);
        return;
      }
      if (repeated) {
        readItems(wire);
        return;
      }
      doubtIf(wire != value.wire || seen == message.message);
      seen = message.message;
      if (oneof >= 0) {
        doubtIf(message.oneofs[oneof] == message.message);
        message.oneofs[oneof] = message.message;
      }
      value.read();
    }

    private void readItems(int wire) {
      if (wire == value.wire) {
        value.read();
        return;
      }
      doubtIf(wire != DELIMITED);
      int length = length();
      int stop = at + length;
      while (at < stop) {
        value.read();
      }
      doubtIf(at != stop);
    }

    void finish(int message) {
      if (entries != null && entries.count > 0) {
        entries.read();
      }
      if (lists != null) {
        lists.addFrom(first);
      } else if (entries == null && !repeated && to != null && seen != message) {
        if (implicit) {
          value.addDefault();
        } else {
          to.addNull();
        }
      }
    }
  }

  /** Entries of a map, which are read in the order of their keys when the message has ended. */
  private final class Entries {
    private static final int MOST_SORTED = 64;

    private final Value key;
    private final Value value;
    private final int keyTag;
    private final int valueTag;
    private final boolean hasTextKeys;
    private final boolean valueHasDefault;
    private int count;
    private int[] starts = new int[16];
    private int[] ends = new int[16];
    /** Keys as numbers in their order; or the ends of text keys, and their starts in the high bits. */
    private long[] keys = new long[16];
    private int[] order = new int[16];

    Entries(JsonNode plan, Vectors.Lists to) {
      key = value(plan.get("key"), to == null ? null : to.items);
      value = value(plan.get("value"), to == null ? null : to.values);
      keyTag = 1 << 3 | key.wire;
      valueTag = 2 << 3 | value.wire;
      hasTextKeys = key instanceof Text;
      valueHasDefault = plan.get("has_default").asBoolean();
    }

    /** Note the place of an entry. */
    void note(int wire) {
      doubtIf(wire != DELIMITED);
      int length = length();
      if (count == starts.length) {
        starts = Arrays.copyOf(starts, 2 * count);
        ends = Arrays.copyOf(ends, 2 * count);
        keys = Arrays.copyOf(keys, 2 * count);
        order = Arrays.copyOf(order, 2 * count);
      }
      starts[count] = at;
      at += length;
      ends[count++] = at;
    }

    void read() {
      int position = at;
      int outer = end;
      for (int i = 0; i < count; i++) {
        at = starts[i];
        end = ends[i];
        findKey(i);
        insert(i);
      }
      for (int i = 0; i < count; i++) {
        at = starts[order[i]];
        end = ends[order[i]];
        readEntry();
      }
      at = position;
      end = outer;
    }

    /** Find the key of an entry, which the writers put first. */
    private void findKey(int entry) {
      boolean isThere = at < end && data[at] == keyTag;
      at++;
      if (hasTextKeys) {
        int length = isThere ? length() : 0;
        keys[entry] = (long) at << 32 | at + length;
      } else {
        keys[entry] = isThere ? key.order() : key.orderOfZero();
      }
    }

    /** Put an entry into the order. Most writers sort, so it is mostly the last one. */
    private void insert(int entry) {
      int place = entry;
      while (place > 0) {
        int compared = compare(order[place - 1], entry);
        doubtIf(compared == 0 || compared > 0 && count > MOST_SORTED); // of equal keys, the last one counts
        if (compared < 0) {
          break;
        }
        order[place] = order[place - 1];
        place--;
      }
      order[place] = entry;
    }

    private int compare(int one, int other) {
      if (!hasTextKeys) {
        return Long.compare(keys[one], keys[other]);
      }
      int start = (int) (keys[one] >>> 32);
      int otherStart = (int) (keys[other] >>> 32);
      return Arrays.compareUnsigned(data, start, (int) keys[one], data, otherStart, (int) keys[other]);
    }

    private void readEntry() {
      if (at < end && data[at] == keyTag) {
        at++;
        key.read();
      } else {
        key.addDefault();
      }
      if (at < end && data[at] == valueTag) {
        at++;
        value.read();
      } else {
        doubtIf(!valueHasDefault);
        value.addDefault();
      }
      doubtIf(at != end);
    }
  }
}
