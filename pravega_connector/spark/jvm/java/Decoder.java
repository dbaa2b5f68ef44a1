package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Decoder of events into columns, by steps that the driver's Python has planned.
 *
 * <p>Python is the authority on the values and errors of events. A decoder accepts an event only if Python would return
 * the same values. Whatever else it meets is a doubt: Python then decodes the batch. Columns that a query does not use
 * are not stored, but their bytes are checked as if they were, so the malformed events are the same for all queries.
 */
abstract class Decoder {
  static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  static final long HIGH_BITS = 0x8080808080808080L;
  private static final int MOST_VARINT = 10;

  final Vectors.Structs columns;
  final Vectors.Bytes bytes;
  private final int largest;

  /** Bytes of the batch, the position of the next byte, and the end of the event. */
  byte[] data;
  int at;
  int end;

  Decoder(JsonNode steps, Vectors.Structs columns) {
    this.columns = columns;
    bytes = columns.bytes;
    largest = steps.get("largest").asInt();
  }

  /** Return the decoder of steps that adds to some columns. */
  static Decoder of(JsonNode steps, Vectors.Structs columns) {
    return switch (steps.get("format").asText()) {
      case "avro" -> new AvroDecoder(steps, columns);
      case "json" -> new JsonDecoder(steps, columns);
      case "protobuf" -> new ProtobufDecoder(steps, columns);
      case "text" -> new TextDecoder(steps, columns);
      default -> throw new ReadException("this version of the JVM reader cannot decode " + steps.get("format"));
    };
  }

  /** Read one event, and add a value to each column. Throws Doubt. */
  abstract void event();

  /** Read the event between two positions in the bytes of the batch. Throws Doubt, IndexOutOfBoundsException. */
  final void decode(int start, int stop) {
    doubtIf(stop - start > largest);
    data = bytes.data;
    at = start;
    end = stop;
    event();
  }

  /** Event that is malformed, or that only Python can judge. */
  static final class Doubt extends RuntimeException {
    private static final long serialVersionUID = 1L;
    static final Doubt INSTANCE = new Doubt();

    private Doubt() {
      super(null, null, false, false);
    }
  }

  static Doubt doubt() {
    return Doubt.INSTANCE;
  }

  static void doubtIf(boolean invalid) {
    if (invalid) {
      throw Doubt.INSTANCE;
    }
  }

  /** Read an unsigned number of up to 64 bits, seven bits a byte, the lowest ones first. */
  final long varint() {
    byte next = data[at++];
    return next >= 0 ? next : longVarint(next & 0x7f);
  }

  private long longVarint(long low) {
    long value = low;
    for (int i = 1; i < MOST_VARINT; i++) {
      byte next = data[at++];
      value |= (next & 0x7fL) << (7 * i);
      if (next >= 0) {
        doubtIf(i == MOST_VARINT - 1 && next > 1);
        return value;
      }
    }
    throw doubt();
  }

  /** Return a length that was read, of bytes or items of which each has a byte: the event has as many. */
  final int inEvent(long length) {
    doubtIf(length < 0 || length > end - at);
    return (int) length;
  }

  /** Add a number to its column, if there is one. The compiler inlines the frequent types, which come first. */
  static void store(Vectors.Vector to, long number) {
    if (to instanceof Vectors.Longs longs) {
      longs.add(number);
    } else if (to instanceof Vectors.Ints ints) {
      ints.add(number);
    } else if (to != null) {
      to.add(number);
    }
  }

  static void store(Vectors.Vector to, double number) {
    if (to instanceof Vectors.Doubles doubles) {
      doubles.add(number);
    } else if (to != null) {
      to.add(number);
    }
  }

  /** Add the next bytes to a column, if there is one. */
  final void take(Vectors.Texts to, int length) {
    if (to != null) {
      to.add(at, length);
    }
    at += length;
  }

  final long fixed64() {
    long value = (long) LONG.get(data, at);
    at += Long.BYTES;
    return value;
  }

  final int fixed32() {
    int value = (int) INT.get(data, at);
    at += Integer.BYTES;
    return value;
  }

  /** Write a byte of a text that is not in the event as it is, and return the position after it. */
  final int put(int to, int value) {
    data[to] = (byte) value;
    return to + 1;
  }

  /** Write a character in UTF-8, and return the position after it. */
  final int putUtf8(int to, int point) {
    if (point < 0x80) {
      return put(to, point);
    }
    if (point < 0x800) {
      return put(put(to, 0xc0 | point >> 6), 0x80 | point & 0x3f);
    }
    int next = point < 0x10000 ? put(to, 0xe0 | point >> 12) : put(put(to, 0xf0 | point >> 18), 0x80 | point >> 12 & 0x3f);
    return put(put(next, 0x80 | point >> 6 & 0x3f), 0x80 | point & 0x3f);
  }

  /** Check that bytes of the event are UTF-8. */
  final void checkText(int start, int length) {
    checkUtf8(data, asciiEnd(start, start + length), start + length);
  }

  /** Return the position of the first byte that is not ASCII, or {@code stop}. */
  final int asciiEnd(int start, int stop) {
    byte[] text = data;
    int i = start;
    while (i <= stop - Long.BYTES && ((long) LONG.get(text, i) & HIGH_BITS) == 0) {
      i += Long.BYTES;
    }
    while (i < stop && text[i] >= 0) {
      i++;
    }
    return i;
  }

  /** Check the bytes from a character on. The bounds of the second byte leave out overlong forms and surrogates. */
  private static void checkUtf8(byte[] text, int start, int stop) {
    int i = start;
    while (i < stop) {
      int head = text[i++] & 0xff;
      if (head < 0x80) {
        continue;
      }
      int more = head >= 0xf0 ? 3 : head >= 0xe0 ? 2 : 1;
      doubtIf(head < 0xc2 || head > 0xf4 || more > stop - i);
      int second = text[i] & 0xff;
      int least = head == 0xe0 ? 0xa0 : head == 0xf0 ? 0x90 : 0x80;
      int most = head == 0xed ? 0x9f : head == 0xf4 ? 0x8f : 0xbf;
      doubtIf(second < least || second > most);
      for (int k = 1; k < more; k++) {
        doubtIf((text[i + k] & 0xc0) != 0x80);
      }
      i += more;
    }
  }
}
