package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;

/** Decoder of events that are bytes or UTF-8 text as a whole, or one string of Java's serialization. */
final class TextDecoder extends Decoder {
  /** Magic number and version of the stream, and the tag of a string of at most 65,535 bytes. */
  private static final byte[] STRING = {(byte) 0xac, (byte) 0xed, 0, 5, 0x74};

  private final boolean isJava;
  private final boolean isText;
  private final Vectors.Texts to;

  TextDecoder(JsonNode plan, Vectors.Structs columns) {
    super(plan, columns);
    isJava = plan.get("op").asText().equals("java");
    isText = plan.get("op").asText().equals("utf8");
    to = (Vectors.Texts) columns.child("value");
  }

  @Override
  void event() {
    if (isJava) {
      javaString();
      return;
    }
    if (isText) {
      checkText(at, end - at);
    }
    take(to, end - at);
  }

  private void javaString() {
    int start = at + STRING.length;
    doubtIf(!Arrays.equals(STRING, 0, STRING.length, data, at, start));
    at = start + 2;
    doubtIf(((data[start] & 0xff) << 8 | data[start + 1] & 0xff) != end - at);
    if (asciiEnd(at, end) == end) {
      take(to, end - at);
    } else {
      modifiedUtf8();
    }
  }

  /** Add text of modified UTF-8: it has characters of UTF-16, and two bytes for NUL. */
  private void modifiedUtf8() {
    int into = bytes.reserve(end - at); // UTF-8 is not longer
    data = bytes.data;
    int stop = into;
    while (at < end) {
      char unit = unit();
      int point = unit;
      if (Character.isSurrogate(unit)) {
        char low = unit();
        doubtIf(!Character.isSurrogatePair(unit, low));
        point = Character.toCodePoint(unit, low);
      }
      stop = putUtf8(stop, point);
    }
    doubtIf(at != end);
    bytes.release(stop);
    if (to != null) {
      to.add(into, stop - into);
    }
  }

  /** Read a character of one, two or three bytes, which may be more than it needs. */
  private char unit() {
    int head = data[at++];
    if (head >= 0) {
      return (char) head;
    }
    if ((head & 0xe0) == 0xc0) {
      return (char) ((head & 0x1f) << 6 | sixBits());
    }
    doubtIf((head & 0xf0) != 0xe0);
    return (char) ((head & 0x0f) << 12 | sixBits() << 6 | sixBits());
  }

  private int sixBits() {
    byte next = data[at++];
    doubtIf((next & 0xc0) != 0x80);
    return next & 0x3f;
  }
}
