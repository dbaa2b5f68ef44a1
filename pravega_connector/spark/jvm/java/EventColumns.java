package pravegaserde.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Rows of a batch, whose values stay in the buffer in which they were received. */
final class EventColumns {
  static final int HEADER = 8;

  /** Bytes of the segment from offset {@code base}. */
  ByteBuffer data;
  long base;
  int count;
  /** Position of each event's header in {@code data}, and the length of each event. */
  int[] starts = new int[16384];
  int[] lengths = new int[16384];
  private Task.Slice slice;
  private UTF8String scope;
  private UTF8String stream;
  private final ColumnarBatch batch;

  EventColumns(StructType schema) {
    ColumnVector[] columns = new ColumnVector[schema.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = column(schema.apply(i));
    }
    batch = new ColumnarBatch(columns);
  }

  void begin(Task.Slice next) {
    slice = next;
    scope = UTF8String.fromString(next.scope());
    stream = UTF8String.fromString(next.stream());
  }

  void add(int start, int length) {
    if (count == starts.length) {
      starts = Arrays.copyOf(starts, 2 * count);
      lengths = Arrays.copyOf(lengths, 2 * count);
    }
    starts[count] = start;
    lengths[count++] = length;
  }

  ColumnarBatch batch() {
    batch.setNumRows(count);
    return batch;
  }

  private Column column(StructField field) {
    DataType type = field.dataType();
    return switch (field.name()) {
      case "event" -> new Column(type) {
        @Override
        public byte[] getBinary(int row) {
          byte[] event = new byte[lengths[row]];
          data.get(starts[row] + HEADER, event);
          return event;
        }
      };
      case "scope" -> new Column(type) {
        @Override
        public UTF8String getUTF8String(int row) {
          return scope;
        }
      };
      case "stream" -> new Column(type) {
        @Override
        public UTF8String getUTF8String(int row) {
          return stream;
        }
      };
      case "segment_id" -> new Column(type) {
        @Override
        public long getLong(int row) {
          return slice.segmentId();
        }
      };
      case "offset" -> new Column(type) {
        @Override
        public long getLong(int row) {
          return base + starts[row];
        }
      };
      case "event_time_low" -> new EventTime(type, -1);
      case "event_time_high" -> new EventTime(type, 0);
      default -> throw new IllegalArgumentException(field.name());
    };
  }

  /** Event time in microseconds: that of the last watermark before the event, or of the first one after it. */
  private final class EventTime extends Column {
    private final int step;

    EventTime(DataType type, int step) {
      super(type);
      this.step = step;
    }

    private int watermark(int row) {
      int after = Arrays.binarySearch(slice.places(), base + starts[row]);
      // Watermarks at one offset: the last one of them counts.
      if (after < 0) {
        return -after - 1 + step;
      }
      while (after < slice.places().length && slice.places()[after] == base + starts[row]) {
        after++;
      }
      return after + step;
    }

    @Override
    public boolean hasNull() {
      return true;
    }

    @Override
    public boolean isNullAt(int row) {
      int found = watermark(row);
      return found < 0 || found >= slice.places().length;
    }

    @Override
    public long getLong(int row) {
      long[] times = step < 0 ? slice.lows() : slice.highs();
      return Math.multiplyExact(times[watermark(row)], 1000L);
    }
  }

  private abstract static class Column extends ColumnVector {
    Column(DataType type) {
      super(type);
    }

    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
      return false;
    }

    @Override
    public int numNulls() {
      return 0;
    }

    @Override
    public boolean isNullAt(int row) {
      return false;
    }

    private UnsupportedOperationException otherType() {
      return new UnsupportedOperationException("a value of another type than " + type);
    }

    @Override
    public boolean getBoolean(int row) {
      throw otherType();
    }

    @Override
    public byte getByte(int row) {
      throw otherType();
    }

    @Override
    public short getShort(int row) {
      throw otherType();
    }

    @Override
    public int getInt(int row) {
      throw otherType();
    }

    @Override
    public long getLong(int row) {
      throw otherType();
    }

    @Override
    public float getFloat(int row) {
      throw otherType();
    }

    @Override
    public double getDouble(int row) {
      throw otherType();
    }

    @Override
    public ColumnarArray getArray(int row) {
      throw otherType();
    }

    @Override
    public ColumnarMap getMap(int row) {
      throw otherType();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      throw otherType();
    }

    @Override
    public UTF8String getUTF8String(int row) {
      throw otherType();
    }

    @Override
    public byte[] getBinary(int row) {
      throw otherType();
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      throw otherType();
    }
  }
}
