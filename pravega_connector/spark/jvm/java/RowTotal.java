package pravegaserde.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Total of rows as in Python's {@code batch_commit/digest.py}, which defines it; and the position of a routing key. */
final class RowTotal {
  private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long GAMMA = 0x9E3779B97F4A7C15L;
  private static final int LONGEST = 1024;
  private static final int KEYS = 128;
  private static final int EVENT_LENGTH = 256;
  private static final int KEY_LENGTH = 257;
  private static final int SEED = "EventRouter".hashCode();
  private static final long[][] C = new long[2][KEY_LENGTH + 1];

  static {
    for (int lane = 0; lane < 2; lane++) {
      for (int n = 0; n <= KEY_LENGTH; n++) {
        long z = (512 * lane + n + 1) * GAMMA;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        C[lane][n] = z ^ z >>> 31 | 1;
      }
    }
  }

  long rows;
  long bytes;
  final long[] lanes = new long[2];
  private final long[] row = new long[2];
  private final long[] digest = new long[2];
  private byte[] wide = new byte[256];

  /** Add a row; {@code keySize} is -1 without a key. */
  void add(byte[] data, int event, int size, byte[] key, int keySize) {
    rows++;
    bytes += size;
    row[0] = C[0][EVENT_LENGTH] * (size + 1L) + C[0][KEY_LENGTH] * (keySize + 1L);
    row[1] = C[1][EVENT_LENGTH] * (size + 1L) + C[1][KEY_LENGTH] * (keySize + 1L);
    words(data, event, size, 0);
    if (keySize > 0) {
      words(key, 0, keySize, KEYS);
    }
    lanes[0] += finished(row[0]);
    lanes[1] += finished(row[1]);
  }

  private void words(byte[] data, int at, int size, int n) {
    if (size > LONGEST) {
      murmur(data, at, size, 0);
      word(digest[0], n);
      word(digest[1], n + 1);
      return;
    }
    int end = at + (size & ~7);
    for (; at < end; at += 8) {
      word((long) WORDS.get(data, at), n++);
    }
    if ((size & 7) != 0) {
      word(rest(data, at, size & 7), n);
    }
  }

  private void word(long value, int n) {
    long mixed = value * GAMMA;
    mixed ^= mixed >>> 32;
    row[0] += C[0][n] * mixed;
    row[1] += C[1][n] * mixed;
  }

  private static long rest(byte[] data, int at, int size) {
    long word = 0;
    for (int i = 0; i < size; i++) {
      word |= (data[at + i] & 0xFFL) << 8 * i;
    }
    return word;
  }

  private static long finished(long k) {
    k = (k ^ k >>> 33) * 0xFF51AFD7ED558CCDL;
    k = (k ^ k >>> 33) * 0xC4CEB9FE1A85EC53L;
    return k ^ k >>> 33;
  }

  /** Return the position of a key in [0, 1), as Java's clients do; NaN if the key is not UTF-8. */
  double position(byte[] key, int size) {
    if (wide.length < 2 * size) {
      wide = new byte[4 * size];
    }
    byte[] units = wide;
    int length = 2 * size;
    for (int i = 0; i < size; i++) {
      if (key[i] < 0) {
        String text = new String(key, 0, size, StandardCharsets.UTF_8);
        byte[] again = text.getBytes(StandardCharsets.UTF_8);
        if (!Arrays.equals(again, 0, again.length, key, 0, size)) {
          return Double.NaN;
        }
        units = text.getBytes(StandardCharsets.UTF_16LE);
        length = units.length;
        break;
      }
      units[2 * i] = key[i];
      units[2 * i + 1] = 0;
    }
    murmur(units, 0, length, SEED);
    return (digest[0] >>> 12) * 0x1p-52;
  }

  /** Set {@code digest} to MurmurHash3_x64_128. */
  private void murmur(byte[] data, int at, int size, long seed) {
    long first = seed;
    long second = seed;
    int end = at + (size & ~15);
    for (; at < end; at += 16) {
      first = (Long.rotateLeft(first ^ mixed1((long) WORDS.get(data, at)), 27) + second) * 5 + 0x52DCE729;
      second = (Long.rotateLeft(second ^ mixed2((long) WORDS.get(data, at + 8)), 31) + first) * 5 + 0x38495AB5;
    }
    int left = size & 15;
    first ^= mixed1(rest(data, at, Math.min(left, 8))) ^ size;
    second ^= mixed2(rest(data, at + 8, Math.max(left - 8, 0))) ^ size;
    first += second;
    second += first;
    digest[0] = finished(first) + finished(second);
    digest[1] = digest[0] + finished(second);
  }

  private static long mixed1(long k) {
    return Long.rotateLeft(k * 0x87C37B91114253D5L, 31) * 0x4CF5AD432745937FL;
  }

  private static long mixed2(long k) {
    return Long.rotateLeft(k * 0x4CF5AD432745937FL, 33) * 0x87C37B91114253D5L;
  }
}
