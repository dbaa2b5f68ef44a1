package pravegaserde.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/** Rows of a batch. Raw values stay in the buffer in which they were received; a decoder has the others. */
final class EventColumns {
  static final int HEADER = 8;

  /** Bytes of the segment from offset {@code base}. */
  ByteBuffer data;
  long base;
  int count;
  /** Position of each event's header in {@code data}, and the length of each event. */
  int[] starts = new int[16384];
  int[] lengths = new int[16384];
  Task.Slice slice;
  private final ConstantColumnVector scope = new ConstantColumnVector(1, DataTypes.StringType);
  private final ConstantColumnVector stream = new ConstantColumnVector(1, DataTypes.StringType);
  private final ConstantColumnVector segment = new ConstantColumnVector(1, DataTypes.LongType);
  private final ColumnarBatch batch;
  private final Decoders decoders;

  /** {@code typed} is null for raw events. */
  EventColumns(StructType schema, TypedPlan typed) {
    decoders = typed == null ? null : typed.decoders(schema);
    ColumnVector[] columns = new ColumnVector[schema.size()];
    for (int i = 0; i < columns.length; i++) {
      StructField field = schema.apply(i);
      if (typed == null || typed.isMetadata(field.name())) {
        columns[i] = column(field);
      } else {
        columns[i] = typed.isCorrupt(field.name()) ? nulls(field.dataType()) : decoders.columns.child(field.name());
      }
    }
    batch = new ColumnarBatch(columns);
  }

  /** Decode the events. Return false if Python must decode this batch. */
  boolean decode() {
    return decoders == null || decoders.decode(data, starts, lengths, count);
  }

  void begin(Task.Slice next) {
    slice = next;
    scope.setUtf8String(UTF8String.fromString(next.scope()));
    stream.setUtf8String(UTF8String.fromString(next.stream()));
    segment.setLong(next.segmentId());
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

  private static ColumnVector nulls(DataType type) {
    ConstantColumnVector column = new ConstantColumnVector(1, type);
    column.setNull();
    return column;
  }

  private ColumnVector column(StructField field) {
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
      case "scope" -> scope;
      case "stream" -> stream;
      case "segment_id" -> segment;
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
}
