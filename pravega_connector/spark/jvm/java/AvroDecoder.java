package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/** Decoder of Avro events. Its steps follow the bytes of the writer, and fill the columns of the reader. */
final class AvroDecoder extends Decoder {
  private final Step root;

  AvroDecoder(JsonNode plan, Vectors.Structs columns) {
    super(plan, columns);
    root = step(plan.get("root"), plan.get("record").asBoolean() ? columns : columns.child("value"));
  }

  @Override
  void event() {
    root.read();
    doubtIf(at > end);
    while (at < end) { // some writers pad with zeros
      doubtIf(data[at++] != 0);
    }
  }

  /** Reads a value at {@code at}. A step without a column checks the value as one with a column does. */
  private abstract static class Step {
    abstract void read();
  }

  private Step step(JsonNode plan, Vectors.Vector to) {
    return switch (plan.get("op").asText()) {
      case "null" -> nothing(to);
      case "boolean" -> flag((Vectors.Booleans) to);
      case "int", "long" -> integer(plan, to);
      case "float" -> floating(true, to);
      case "double" -> floating(false, to);
      case "text" -> text(plan, (Vectors.Texts) to);
      case "decimal" -> decimal(plan, (Vectors.Decimals) to);
      case "enum" -> symbol(plan, (Vectors.Texts) to);
      case "array" -> items(plan, (Vectors.Lists) to);
      case "map" -> entries(plan, (Vectors.Lists) to);
      case "record" -> new Fields(plan, (Vectors.Structs) to);
      case "union" -> plan.has("members") ? new Members(plan, (Vectors.Structs) to) : branches(plan, to);
      default -> throw new IllegalArgumentException(plan.toString());
    };
  }

  // ---- numbers ----

  /** Read a number of up to 64 bits. */
  private long number() {
    long value = varint();
    return value >>> 1 ^ -(value & 1);
  }

  private Step integer(JsonNode plan, Vectors.Vector to) {
    boolean narrow = plan.get("op").asText().equals("int");
    long times = plan.path("times").asLong(1);
    long below = plan.path("below").asLong(0);
    return new Step() {
      @Override
      void read() {
        long value = number();
        doubtIf(narrow && value != (int) value);
        doubtIf(below > 0 && (value < 0 || value >= below));
        if (times > 1) {
          long most = Long.MAX_VALUE / times;
          doubtIf(value > most || value < -most);
          value *= times;
        }
        store(to, value);
      }
    };
  }

  private Step floating(boolean single, Vectors.Vector to) {
    return new Step() {
      @Override
      void read() {
        double value = single ? Float.intBitsToFloat(fixed32()) : Double.longBitsToDouble(fixed64());
        store(to, value);
      }
    };
  }

  private Step decimal(JsonNode plan, Vectors.Decimals to) {
    int size = plan.path("size").asInt(-1);
    BigInteger bound = BigInteger.TEN.pow(plan.get("precision").asInt());
    boolean wide = plan.get("precision").asInt() > 18;
    return new Step() {
      @Override
      void read() {
        int length = inEvent(size < 0 ? number() : size);
        doubtIf(length < 1);
        if (length <= 8) {
          long value = data[at];
          for (int i = 1; i < length; i++) {
            value = value << 8 | data[at + i] & 0xff;
          }
          doubtIf(!wide && (value >= bound.longValue() || value <= -bound.longValue()));
          store(to, value);
        } else {
          BigInteger value = new BigInteger(data, at, length);
          doubtIf(value.abs().compareTo(bound) >= 0);
          if (to != null && wide) {
            to.add(value);
          } else {
            store(to, value.longValue());
          }
        }
        at += length;
      }
    };
  }

  // ---- other single values ----

  private static Step nothing(Vectors.Vector to) {
    return new Step() {
      @Override
      void read() {
        if (to != null) {
          to.addNull();
        }
      }
    };
  }

  private Step flag(Vectors.Booleans to) {
    return new Step() {
      @Override
      void read() {
        byte value = data[at++];
        doubtIf(value != 0 && value != 1);
        if (to != null) {
          to.add(value == 1);
        }
      }
    };
  }

  private Step text(JsonNode plan, Vectors.Texts to) {
    int size = plan.path("size").asInt(-1);
    boolean utf8 = plan.path("utf8").asBoolean();
    boolean uuid = plan.path("uuid").asBoolean();
    return new Step() {
      @Override
      void read() {
        int length = inEvent(size < 0 ? number() : size);
        if (utf8) {
          checkText(at, length);
        }
        if (uuid) {
          checkUuid(at, length);
        }
        take(to, length);
      }
    };
  }

  private void checkUuid(int start, int length) {
    doubtIf(length != 36);
    for (int i = 0; i < length; i++) {
      int next = data[start + i];
      boolean valid = i == 8 || i == 13 || i == 18 || i == 23 ? next == '-' : Character.digit(next, 16) >= 0;
      doubtIf(!valid);
    }
  }

  private Step symbol(JsonNode plan, Vectors.Texts to) {
    JsonNode symbols = plan.get("symbols");
    int[] starts = new int[symbols.size()];
    int[] lengths = new int[symbols.size()];
    for (int i = 0; i < starts.length; i++) {
      byte[] symbol = symbols.get(i).asText().getBytes(StandardCharsets.UTF_8);
      starts[i] = bytes.constant(symbol);
      lengths[i] = symbols.get(i).isNull() ? -1 : symbol.length;
    }
    return new Step() {
      @Override
      void read() {
        long index = number();
        doubtIf(index < 0 || index >= starts.length || lengths[(int) index] < 0);
        if (to != null) {
          to.add(starts[(int) index], lengths[(int) index]);
        }
      }
    };
  }

  // ---- nested values ----

  /** Return the number of items in the next block, or 0 at the end. Every item has at least one byte. */
  private int block() {
    long count = number();
    if (count < 0) {
      number(); // the size of the block in bytes
      count = -count;
    }
    return inEvent(count);
  }

  private Step items(JsonNode plan, Vectors.Lists to) {
    Step item = step(plan.get("item"), to == null ? null : to.items);
    return new Step() {
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
    };
  }

  private Step entries(JsonNode plan, Vectors.Lists to) {
    Vectors.Texts keys = to == null ? null : (Vectors.Texts) to.items;
    Step value = step(plan.get("value"), to == null ? null : to.values);
    return new Step() {
      @Override
      void read() {
        int first = to == null ? 0 : keys.count;
        for (int left = block(); left > 0; left = block()) {
          while (left-- > 0) {
            int length = inEvent(number());
            checkText(at, length);
            take(keys, length);
            value.read();
          }
        }
        if (to != null) {
          doubtIf(keys.repeats(keys.count - first)); // Python keeps the last value of a key
          to.addFrom(first);
        }
      }
    };
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
  private Step branches(JsonNode plan, Vectors.Vector to) {
    Step[] branches = new Step[plan.get("branches").size()];
    for (int i = 0; i < branches.length; i++) {
      JsonNode branch = plan.get("branches").get(i);
      branches[i] = branch.isNull() ? null : step(branch, to);
    }
    return new Step() {
      @Override
      void read() {
        branches[branch(branches)].read();
      }
    };
  }

  private int branch(Step[] branches) {
    long index = number();
    doubtIf(index < 0 || index >= branches.length || branches[(int) index] == null);
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
