package pravegaserde.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns that decoders fill value by value. Texts stay in the bytes of the batch. */
final class Vectors {
  private static final int CAPACITY = 1024;

  private Vectors() {}

  static Vector of(DataType type, Bytes bytes) {
    if (type instanceof StringType || type instanceof BinaryType) {
      return new Texts(type, bytes);
    }
    if (type instanceof DecimalType decimal) {
      return new Decimals(decimal);
    }
    if (type instanceof StructType struct) {
      return new Structs(struct, bytes);
    }
    if (type instanceof ArrayType array) {
      return new Lists(type, of(array.elementType(), bytes), null);
    }
    if (type instanceof MapType map) {
      return new Lists(type, of(map.keyType(), bytes), of(map.valueType(), bytes));
    }
    return switch (type.typeName()) {
      case "long", "timestamp", "timestamp_ntz" -> new Longs(type);
      case "integer", "date", "short", "byte" -> new Ints(type);
      case "float" -> new Floats(type);
      case "double" -> new Doubles(type);
      case "boolean" -> new Booleans(type);
      default -> throw new IllegalArgumentException("a column of type " + type.sql());
    };
  }

  /** Bytes of a batch: constants of the decoder, the events, and texts that are not in an event as they are. */
  static final class Bytes {
    byte[] data = new byte[CAPACITY];
    private int constants;
    private int used;

    /** Add bytes that every batch has, and return their position. Call this before the first batch. */
    int constant(byte[] value) {
      int at = constants;
      used = at;
      reserve(value.length);
      System.arraycopy(value, 0, data, at, value.length);
      constants = used;
      return at;
    }

    /** Load the events of a batch, and return the position of the first byte. A zero and seven bytes follow the last. */
    int load(ByteBuffer events, int size) {
      used = constants;
      reserve(size + Long.BYTES);
      events.get(0, data, constants, size);
      data[constants + size] = 0;
      return constants;
    }

    /** Reserve bytes after those in use, and return their position. {@code data} may be another array afterwards. */
    int reserve(int size) {
      int at = used;
      if (size > data.length - at) {
        data = Arrays.copyOf(data, Math.addExact(Math.addExact(at, size), Math.max(at, size) / 4));
      }
      used = at + size;
      return at;
    }

    /** Give back the end of the bytes that were reserved last. */
    void release(int end) {
      used = end;
    }
  }

  /** Column of values that are added one by one. */
  abstract static class Vector extends Column {
    int count;
    private boolean[] nulls = new boolean[CAPACITY];
    private int nullCount;

    Vector(DataType type) {
      super(type);
    }

    void clear() {
      if (nullCount > 0) {
        Arrays.fill(nulls, 0, count, false);
        nullCount = 0;
      }
      count = 0;
    }

    /** Return the row of the next value. */
    final int next() {
      if (count == nulls.length) {
        nulls = Arrays.copyOf(nulls, 2 * count);
        grow(2 * count);
      }
      return count++;
    }

    final void addNull() {
      int row = count;
      addEmpty();
      nulls[row] = true;
      nullCount++;
    }

    abstract void grow(int capacity);

    /** Add any value, for a null. */
    void addEmpty() {
      next();
    }

    /** Add a number that the type has, rounded once for a float. */
    void add(long number) {
      throw new IllegalStateException("a number in a column of type " + type.sql());
    }

    void add(double number) {
      throw new IllegalStateException("a floating-point number in a column of type " + type.sql());
    }

    @Override
    public boolean hasNull() {
      return nullCount > 0;
    }

    @Override
    public int numNulls() {
      return nullCount;
    }

    @Override
    public boolean isNullAt(int row) {
      return nulls[row];
    }
  }

  static final class Longs extends Vector {
    private long[] values = new long[CAPACITY];

    Longs(DataType type) {
      super(type);
    }

    @Override
    void grow(int capacity) {
      values = Arrays.copyOf(values, capacity);
    }

    @Override
    void add(long number) {
      int row = next();
      values[row] = number;
    }

    @Override
    public long getLong(int row) {
      return values[row];
    }
  }

  static final class Ints extends Vector {
    private int[] values = new int[CAPACITY];

    Ints(DataType type) {
      super(type);
    }

    @Override
    void grow(int capacity) {
      values = Arrays.copyOf(values, capacity);
    }

    @Override
    void add(long number) {
      int row = next();
      values[row] = (int) number;
    }

    @Override
    public int getInt(int row) {
      return values[row];
    }

    @Override
    public short getShort(int row) {
      return (short) values[row];
    }

    @Override
    public byte getByte(int row) {
      return (byte) values[row];
    }
  }

  static final class Floats extends Vector {
    private float[] values = new float[CAPACITY];

    Floats(DataType type) {
      super(type);
    }

    @Override
    void grow(int capacity) {
      values = Arrays.copyOf(values, capacity);
    }

    private void add(float number) {
      int row = next();
      values[row] = number;
    }

    @Override
    void add(double number) {
      add((float) number);
    }

    @Override
    void add(long number) {
      add((float) number);
    }

    @Override
    public float getFloat(int row) {
      return values[row];
    }
  }

  static final class Doubles extends Vector {
    private double[] values = new double[CAPACITY];

    Doubles(DataType type) {
      super(type);
    }

    @Override
    void grow(int capacity) {
      values = Arrays.copyOf(values, capacity);
    }

    @Override
    void add(double number) {
      int row = next();
      values[row] = number;
    }

    @Override
    void add(long number) {
      add((double) number);
    }

    @Override
    public double getDouble(int row) {
      return values[row];
    }
  }

  static final class Booleans extends Vector {
    private boolean[] values = new boolean[CAPACITY];

    Booleans(DataType type) {
      super(type);
    }

    @Override
    void grow(int capacity) {
      values = Arrays.copyOf(values, capacity);
    }

    void add(boolean value) {
      int row = next();
      values[row] = value;
    }

    @Override
    public boolean getBoolean(int row) {
      return values[row];
    }
  }

  /** Column of values that are parts of other data. */
  private abstract static class Parts extends Vector {
    int[] starts = new int[CAPACITY];
    int[] lengths = new int[CAPACITY];

    Parts(DataType type) {
      super(type);
    }

    @Override
    final void grow(int capacity) {
      starts = Arrays.copyOf(starts, capacity);
      lengths = Arrays.copyOf(lengths, capacity);
    }

    final void add(int start, int length) {
      int row = next();
      starts[row] = start;
      lengths[row] = length;
    }
  }

  /** Texts, or bytes: each at a position in the bytes of the batch. */
  static final class Texts extends Parts {
    private final Bytes bytes;

    Texts(DataType type, Bytes bytes) {
      super(type);
      this.bytes = bytes;
    }

    @Override
    void addEmpty() {
      add(0, 0);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return UTF8String.fromBytes(bytes.data, starts[row], lengths[row]);
    }

    @Override
    public byte[] getBinary(int row) {
      return Arrays.copyOfRange(bytes.data, starts[row], starts[row] + lengths[row]);
    }

    /** Return true if two of the last {@code size} texts are equal. */
    boolean repeats(int size) {
      if (size < 2) {
        return false;
      }
      if (size > 16) {
        Set<UTF8String> seen = new HashSet<>(2 * size);
        for (int i = count - size; i < count; i++) {
          if (!seen.add(getUTF8String(i))) {
            return true;
          }
        }
        return false;
      }
      byte[] data = bytes.data;
      for (int i = count - size + 1; i < count; i++) {
        for (int j = count - size; j < i; j++) {
          if (lengths[i] == lengths[j]
              && Arrays.equals(data, starts[i], starts[i] + lengths[i], data, starts[j], starts[j] + lengths[j])) {
            return true;
          }
        }
      }
      return false;
    }
  }

  /** Decimals, by their unscaled values: of 64 bits, or of 128 bits for more digits. */
  static final class Decimals extends Vector {
    private final DecimalType decimal;
    private long[] low = new long[CAPACITY];
    private long[] high;

    Decimals(DecimalType type) {
      super(type);
      decimal = type;
      high = type.precision() > Decimal.MAX_LONG_DIGITS() ? new long[CAPACITY] : null;
    }

    @Override
    void grow(int capacity) {
      low = Arrays.copyOf(low, capacity);
      high = high == null ? null : Arrays.copyOf(high, capacity);
    }

    @Override
    void add(long unscaled) {
      int row = next();
      low[row] = unscaled;
      if (high != null) {
        high[row] = unscaled >> 63;
      }
    }

    /** Add an unscaled value of at most 128 bits. The precision allows more than 64. */
    void add(BigInteger unscaled) {
      int row = next();
      low[row] = unscaled.longValue();
      high[row] = unscaled.shiftRight(64).longValue();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      if (high == null) {
        return Decimal.createUnsafe(low[row], precision, scale);
      }
      byte[] value = ByteBuffer.allocate(16).putLong(high[row]).putLong(low[row]).array();
      return Decimal.apply(new BigDecimal(new BigInteger(value), decimal.scale()), precision, scale);
    }
  }

  static final class Structs extends Vector {
    final Bytes bytes;
    private final StructType struct;
    private final Vector[] children;

    Structs(StructType type, Bytes bytes) {
      super(type);
      struct = type;
      this.bytes = bytes;
      children = new Vector[type.size()];
      for (int i = 0; i < children.length; i++) {
        children[i] = of(type.apply(i).dataType(), bytes);
      }
    }

    /** Return the column of a field, or null if the field is not read. */
    Vector child(String name) {
      scala.Option<Object> index = struct.getFieldIndex(name);
      return index.isEmpty() ? null : children[(Integer) index.get()];
    }

    @Override
    void clear() {
      super.clear();
      for (Vector child : children) {
        child.clear();
      }
    }

    @Override
    void grow(int capacity) {}

    /** Begin a value. The caller adds one to each child. */
    void add() {
      next();
    }

    @Override
    void addEmpty() {
      next();
      for (Vector child : children) {
        child.addNull();
      }
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return children[ordinal];
    }
  }

  /** Lists of items, or maps of keys and values. */
  static final class Lists extends Parts {
    /** Items, or keys. */
    final Vector items;
    /** Values; null for lists. */
    final Vector values;

    Lists(DataType type, Vector items, Vector values) {
      super(type);
      this.items = items;
      this.values = values;
    }

    @Override
    void clear() {
      super.clear();
      items.clear();
      if (values != null) {
        values.clear();
      }
    }

    /** Add the list of all items from this one on. */
    void addFrom(int first) {
      add(first, items.count - first);
    }

    @Override
    void addEmpty() {
      addFrom(items.count);
    }

    @Override
    public ColumnarArray getArray(int row) {
      return new ColumnarArray(items, starts[row], lengths[row]);
    }

    @Override
    public ColumnarMap getMap(int row) {
      return new ColumnarMap(items, values, starts[row], lengths[row]);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return ordinal == 0 ? items : values;
    }
  }
}
