package pravegaserde.spark;

import com.fasterxml.jackson.core.io.NumberInput;
import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.sql.types.DataTypes;

/**
 * Decoder of JSON events.
 *
 * <p>The event is followed by a zero, which is valid nowhere in JSON. So no position is compared with the end.
 */
final class JsonDecoder extends Decoder {
  private static final long ONES = 0x0101010101010101L;
  private static final int DEEPEST = 100;
  /** Digits of a number that Python surely reads. */
  private static final int LONGEST_NUMBER = 1000;
  private static final int LONGEST_EXPONENT = 3;
  /** Largest integer of which a double has all smaller ones, and powers of ten that it has exactly. */
  private static final long EXACT = 1L << 53;
  private static final double[] POWERS = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22
  };
  /** Characters after a backslash, and those that they stand for. */
  private static final String ESCAPES = "\"\\/bfnrt";
  private static final String ESCAPED = "\"\\/\b\f\n\r\t";

  private final Step root;
  private int depth;

  JsonDecoder(JsonNode plan, Vectors.Structs columns) {
    super(plan, columns);
    root = step(plan.get("root"), plan.get("record").asBoolean() ? columns : columns.child("value"));
  }

  @Override
  void event() {
    checkText(at, end - at);
    depth = 0;
    value(root);
    space();
    doubtIf(at != end);
  }

  /** Reads a value that is not null, and adds it to its column, if it has one. */
  private abstract static class Step {
    final Vectors.Vector to;

    Step(Vectors.Vector to) {
      this.to = to;
    }

    abstract void read();
  }

  private Step step(JsonNode plan, Vectors.Vector to) {
    return switch (plan.get("op").asText()) {
      case "boolean" -> flag((Vectors.Booleans) to);
      case "integer" -> integer(plan, to);
      case "floating" -> floating(to);
      case "text" -> textStep((Vectors.Texts) to);
      case "binary" -> binary((Vectors.Texts) to);
      case "decimal" -> decimal(plan, (Vectors.Decimals) to);
      case "date" -> date(to);
      case "timestamp" -> timestamp(plan, to);
      case "items" -> items(plan, (Vectors.Lists) to);
      case "entries" -> entries(plan, (Vectors.Lists) to);
      case "fields" -> new Fields(plan, to);
      default -> throw new IllegalArgumentException(plan.toString());
    };
  }

  private void value(Step step) {
    space();
    if (data[at] != 'n') {
      step.read();
      return;
    }
    literal("null");
    if (step.to != null) {
      step.to.addNull();
    }
  }

  // ---- tokens ----

  private void space() {
    while (true) {
      byte next = data[at];
      if (next > ' ' || (next != ' ' && next != '\n' && next != '\t' && next != '\r')) {
        return;
      }
      at++;
    }
  }

  private void token(char token) {
    doubtIf(data[at++] != token);
  }

  private void literal(String text) {
    for (int i = 0; i < text.length(); i++) {
      token(text.charAt(i));
    }
  }

  /** Move to the next quote, backslash or control character of a text. */
  private void plainText() {
    byte[] text = data;
    int i = at;
    long found = 0;
    while (found == 0) {
      long word = (long) LONG.get(text, i);
      long quotes = word ^ '"' * ONES;
      long slashes = word ^ '\\' * ONES;
      found = (quotes - ONES & ~quotes | slashes - ONES & ~slashes | word - ' ' * ONES & ~word) & HIGH_BITS;
      i += Long.BYTES;
    }
    at = i - Long.BYTES + firstByte(found); // a false one may only follow a true one
  }

  /** Read a text after its first quote. Return its start in the bytes of the batch, and set {@code length}. */
  private int text() {
    int start = at;
    plainText();
    if (data[at] == '"') {
      length = at++ - start;
      return start;
    }
    return escapedText(start);
  }

  /** Length of the last text. */
  private int length;

  private int escapedText(int start) {
    int into = bytes.reserve(end - start); // no escape is shorter than its character
    data = bytes.data;
    int size = at - start;
    System.arraycopy(data, start, data, into, size);
    int to = into + size;
    while (true) {
      byte next = data[at++];
      if (next == '"') {
        bytes.release(to);
        length = to - into;
        return into;
      }
      doubtIf(next >= 0 && next < ' ');
      to = next == '\\' ? escape(to) : put(to, next);
    }
  }

  /** Write the character of an escape, and return the position after it. */
  private int escape(int to) {
    byte next = data[at++];
    if (next == 'u') {
      return putUtf8(to, unicode());
    }
    int escape = ESCAPES.indexOf(next);
    doubtIf(escape < 0);
    return put(to, ESCAPED.charAt(escape));
  }

  private int unicode() {
    char code = (char) hex();
    if (!Character.isSurrogate(code)) {
      return code;
    }
    token('\\');
    token('u');
    char low = (char) hex();
    doubtIf(!Character.isSurrogatePair(code, low));
    return Character.toCodePoint(code, low);
  }

  private int hex() {
    int code = 0;
    for (int i = 0; i < 4; i++) {
      int digit = Character.digit(data[at++], 16);
      doubtIf(digit < 0);
      code = code << 4 | digit;
    }
    return code;
  }

  /** Sign, digits as far as they fit, and form of the last number. */
  private boolean negative;

  private long digits;
  private int digitCount;
  private int fraction;
  private boolean hasFraction;
  private boolean hasExponent;

  /** Read a number of JSON. */
  private void number() {
    int start = at;
    negative = data[at] == '-';
    if (negative) {
      at++;
    }
    digits = 0;
    digitCount = fraction = 0;
    hasFraction = hasExponent = false;
    int first = at;
    readDigits();
    doubtIf(data[first] == '0' && at > first + 1);
    if (data[at] == '.') {
      at++;
      hasFraction = true;
      fraction = readDigits();
    }
    if ((data[at] | 0x20) == 'e') {
      at++;
      hasExponent = true;
      if (data[at] == '+' || data[at] == '-') {
        at++;
      }
      int exponent = at;
      while (data[at] >= '0' && data[at] <= '9') {
        at++;
      }
      doubtIf(at == exponent || at - exponent > LONGEST_EXPONENT);
    }
    doubtIf(at - start > LONGEST_NUMBER);
  }

  /** Read at least one digit, and return how many there are. */
  private int readDigits() {
    int start = at;
    int size = Long.BYTES;
    while (size == Long.BYTES) {
      long word = (long) LONG.get(data, at) ^ '0' * ONES;
      long others = (word + 0x76 * ONES | word) & HIGH_BITS; // a false one may only follow a true one
      size = firstByte(others);
      if (size > 0) {
        digits = digits * (long) POWERS[size] + eightDigits(word << (Long.BYTES - size) * 8); // wrong from the 20th on
        at += size;
      }
    }
    int count = at - start;
    doubtIf(count == 0);
    digitCount += count;
    return count;
  }

  /** Return the number of eight digits, the first one in the lowest byte. */
  private static long eightDigits(long word) {
    long pairs = word * 10 + (word >>> 8);
    long mask = 0xff000000ffL;
    return (pairs & mask) * 0xf424000000064L + (pairs >>> 16 & mask) * 0x271000000001L >>> 32;
  }

  /** Return the number of bytes before the first one whose highest bit is set: 8 if there is none. */
  private static int firstByte(long bits) {
    return Long.numberOfTrailingZeros(bits) >>> 3;
  }

  /** Return the integer that {@link #number} has read. */
  private long integer() {
    doubtIf(hasFraction || hasExponent || digitCount > 19 || digits < 0);
    return negative ? -digits : digits;
  }

  // ---- values ----

  private Step flag(Vectors.Booleans flags) {
    return new Step(flags) {
      @Override
      void read() {
        boolean value = data[at] == 't';
        literal(value ? "true" : "false");
        if (flags != null) {
          flags.add(value);
        }
      }
    };
  }

  private Step integer(JsonNode plan, Vectors.Vector column) {
    long most = (1L << plan.get("bits").asInt() - 1) - 1;
    return new Step(column) {
      @Override
      void read() {
        number();
        long value = integer();
        doubtIf(value < -most - 1 || value > most);
        store(to, value);
      }
    };
  }

  private Step floating(Vectors.Vector column) {
    return new Step(column) {
      @Override
      void read() {
        int start = at;
        number();
        doubtIf(negative && digits == 0 && !hasFraction); // the integer zero, which has no sign
        if (to == null) {
          return;
        }
        double value;
        if (!hasExponent && digitCount <= 18 && digits <= EXACT && fraction < POWERS.length) {
          value = digits / POWERS[fraction];
          value = negative ? -value : value;
        } else {
          value = NumberInput.parseDouble(new String(data, start, at - start, StandardCharsets.ISO_8859_1), true);
        }
        doubtIf(Double.isInfinite(value));
        store(to, value);
      }
    };
  }

  private Step decimal(JsonNode plan, Vectors.Decimals decimals) {
    int scale = plan.get("scale").asInt();
    int whole = plan.get("precision").asInt() - scale;
    boolean wide = plan.get("precision").asInt() > 18;
    return new Step(decimals) {
      @Override
      void read() {
        boolean isText = data[at] == '"';
        if (isText) {
          at++;
        }
        int start = at;
        number();
        doubtIf(hasExponent || fraction > scale || digitCount - fraction > Math.max(whole, 1));
        doubtIf(digitCount - fraction > whole && data[negative ? start + 1 : start] != '0');
        if (decimals != null && wide) {
          String text = new String(data, start, at - start, StandardCharsets.ISO_8859_1).replace(".", "");
          decimals.add(new BigInteger(text).multiply(BigInteger.TEN.pow(scale - fraction)));
        } else if (decimals != null) {
          long value = negative ? -digits : digits;
          for (int i = fraction; i < scale; i++) {
            value *= 10;
          }
          decimals.add(value);
        }
        if (isText) {
          token('"');
        }
      }
    };
  }

  private Step textStep(Vectors.Texts texts) {
    return new Step(texts) {
      @Override
      void read() {
        token('"');
        if (texts == null) {
          skipText();
        } else {
          int start = text();
          texts.add(start, length);
        }
      }
    };
  }

  private Step binary(Vectors.Texts texts) {
    return new Step(texts) {
      @Override
      void read() {
        token('"');
        int start = text();
        byte[] value;
        try {
          byte[] text = Arrays.copyOfRange(data, start, start + length);
          value = Base64.getDecoder().decode(text);
          doubtIf(!Arrays.equals(Base64.getEncoder().encode(value), text)); // not padded, or with bits after the end
        } catch (IllegalArgumentException error) {
          throw doubt();
        }
        if (texts != null) {
          int into = bytes.reserve(value.length);
          data = bytes.data;
          System.arraycopy(value, 0, data, into, value.length);
          texts.add(into, value.length);
        }
      }
    };
  }

  // ---- dates and times ----

  /** Read a number of this many digits. */
  private int two() {
    return digit() * 10 + digit();
  }

  private int digit() {
    int digit = data[at++] - '0';
    doubtIf(digit < 0 || digit > 9);
    return digit;
  }

  private long day() {
    int year = two() * 100 + two();
    token('-');
    int month = two();
    token('-');
    int day = two();
    doubtIf(year < 1 || month < 1 || month > 12 || day < 1 || day > YearMonth.of(year, month).lengthOfMonth());
    return LocalDate.of(year, month, day).toEpochDay();
  }

  private Step date(Vectors.Vector column) {
    return new Step(column) {
      @Override
      void read() {
        token('"');
        long day = day();
        token('"');
        store(to, day);
      }
    };
  }

  /** Timestamp: the text of ISO 8601 with at most six digits after the point, or milliseconds. */
  private Step timestamp(JsonNode plan, Vectors.Vector column) {
    boolean zoned = plan.get("zoned").asBoolean();
    return new Step(column) {
      @Override
      void read() {
        long micros;
        if (data[at] == '"') {
          at++;
          micros = micros(zoned);
          token('"');
        } else {
          number();
          long millis = integer();
          long most = Long.MAX_VALUE / 1000;
          doubtIf(millis > most || millis < -most);
          micros = millis * 1000;
        }
        store(to, micros);
      }
    };
  }

  private long micros(boolean zoned) {
    long day = day();
    doubtIf(data[at] != 'T' && data[at] != ' ');
    at++;
    int hour = two();
    token(':');
    int minute = two();
    token(':');
    int second = two();
    doubtIf(hour > 23 || minute > 59 || second > 59);
    int micros = data[at] == '.' ? fractionOfSecond() : 0;
    long seconds = day * 86_400 + hour * 3600 + minute * 60 + second - (zoned ? zone() : 0);
    return seconds * 1_000_000 + micros;
  }

  private int fractionOfSecond() {
    at++;
    int micros = digit();
    int count = 1;
    for (; data[at] >= '0' && data[at] <= '9'; count++) {
      micros = micros * 10 + digit();
      doubtIf(count == 6);
    }
    for (; count < 6; count++) {
      micros *= 10;
    }
    return micros;
  }

  /** Return the seconds by which a zone is before UTC. */
  private int zone() {
    byte sign = data[at++];
    if (sign == 'Z') {
      return 0;
    }
    doubtIf(sign != '+' && sign != '-');
    int hours = two();
    token(':');
    int minutes = two();
    doubtIf(hours > 23 || minutes > 59);
    int seconds = hours * 3600 + minutes * 60;
    return sign == '-' ? -seconds : seconds;
  }

  // ---- nested values ----

  /** Return true if the list or object ends here, false after a comma. */
  private boolean ends(char close) {
    space();
    byte next = data[at++];
    if (next == close) {
      depth--;
      return true;
    }
    doubtIf(next != ',');
    space();
    return false;
  }

  /** Return true if nothing is in the list or object that begins here. */
  private boolean begins(char open, char close) {
    token(open);
    doubtIf(++depth > DEEPEST);
    space();
    if (data[at] != close) {
      return false;
    }
    at++;
    depth--;
    return true;
  }

  private Step items(JsonNode plan, Vectors.Lists lists) {
    Step item = step(plan.get("item"), lists == null ? null : lists.items);
    return new Step(lists) {
      @Override
      void read() {
        int first = lists == null ? 0 : lists.items.count;
        if (!begins('[', ']')) {
          do {
            value(item);
          } while (!ends(']'));
        }
        if (lists != null) {
          lists.addFrom(first);
        }
      }
    };
  }

  private Step entries(JsonNode plan, Vectors.Lists lists) {
    Vectors.Texts keys =
        lists == null ? new Vectors.Texts(DataTypes.StringType, bytes) : (Vectors.Texts) lists.items;
    Step item = step(plan.get("item"), lists == null ? null : lists.values);
    return new Step(lists) {
      @Override
      void read() {
        int first = keys.count;
        if (!begins('{', '}')) {
          do {
            token('"');
            int start = text();
            keys.add(start, length);
            space();
            token(':');
            value(item);
          } while (!ends('}'));
        }
        doubtIf(keys.repeats(keys.count - first)); // Python reads the last value of a key only
        if (lists == null) {
          keys.clear();
        } else {
          lists.addFrom(first);
        }
      }
    };
  }

  private final class Fields extends Step {
    private final Vectors.Structs structs;
    private final byte[][] names;
    /** The first eight bytes of each name. */
    private final long[] heads;
    private final Step[] fields;
    /** Number of the last object that had each field. */
    private final int[] seen;
    private int object;

    Fields(JsonNode plan, Vectors.Vector to) {
      super(to);
      structs = (Vectors.Structs) to;
      JsonNode entries = plan.get("fields");
      names = new byte[entries.size()][];
      heads = new long[names.length];
      fields = new Step[names.length];
      seen = new int[names.length];
      for (int i = 0; i < names.length; i++) {
        String name = entries.get(i).get("name").asText();
        names[i] = name.getBytes(StandardCharsets.UTF_8);
        heads[i] = (long) LONG.get(Arrays.copyOf(names[i], Long.BYTES), 0);
        fields[i] = step(entries.get(i).get("step"), structs == null ? null : structs.child(name));
      }
    }

    @Override
    void read() {
      if (structs != null) {
        structs.add();
      }
      object++;
      int missing = fields.length;
      int hint = 0;
      if (!begins('{', '}')) {
        do {
          token('"');
          int start = at;
          plainText();
          int size = at - start;
          token('"'); // an escape in a name is left to Python
          space();
          token(':');
          int field = find(start, size, hint);
          if (field < 0) {
            space();
            skip();
          } else {
            doubtIf(seen[field] == object); // Python reads the last value only
            seen[field] = object;
            missing--;
            hint = field + 1;
            value(fields[field]);
          }
        } while (!ends('}'));
      }
      if (structs != null && missing > 0) {
        addMissing();
      }
    }

    private void addMissing() {
      for (int i = 0; i < fields.length; i++) {
        if (seen[i] != object && fields[i].to != null) {
          fields[i].to.addNull();
        }
      }
    }

    /** Return the field of a name, or -1. The hint is the next field, if events have the order of the columns. */
    private int find(int start, int size, int hint) {
      for (int i = hint; i < names.length; i++) {
        if (isName(i, start, size)) {
          return i;
        }
      }
      for (int i = 0; i < hint; i++) {
        if (isName(i, start, size)) {
          return i;
        }
      }
      return -1;
    }

    private boolean isName(int field, int start, int size) {
      byte[] name = names[field];
      long mask = size < Long.BYTES ? (1L << 8 * size) - 1 : -1;
      return name.length == size && (((long) LONG.get(data, start) ^ heads[field]) & mask) == 0
          && (size <= Long.BYTES || Arrays.equals(name, 0, size, data, start, start + size));
    }
  }

  // ---- values without a column ----

  private void skip() {
    switch (data[at]) {
      case '"' -> {
        at++;
        skipText();
      }
      case '{' -> {
        if (!begins('{', '}')) {
          do {
            token('"');
            skipText();
            space();
            token(':');
            space();
            skip();
          } while (!ends('}'));
        }
      }
      case '[' -> {
        if (!begins('[', ']')) {
          do {
            skip();
          } while (!ends(']'));
        }
      }
      case 't' -> literal("true");
      case 'f' -> literal("false");
      case 'n' -> literal("null");
      default -> number();
    }
  }

  private void skipText() {
    while (true) {
      plainText();
      byte next = data[at++];
      if (next == '"') {
        return;
      }
      doubtIf(next != '\\');
      byte escape = data[at++];
      if (escape == 'u') {
        hex();
      } else {
        doubtIf(ESCAPES.indexOf(escape) < 0);
      }
    }
  }
}
