package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes events without Spark: each one alone, and then all that are not in doubt as one batch.
 *
 * <p>A request is a plan, the columns of a query, a number of events and the events, each after its length. The answer
 * has a line for each event: its values, or a question mark.
 */
public final class DecodeEvents {
  private DecodeEvents() {}

  public static void main(String[] arguments) throws IOException {
    DataInputStream input = new DataInputStream(new BufferedInputStream(System.in));
    PrintStream output = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
    while (true) {
      int size = input.readInt();
      if (size < 0) {
        return;
      }
      JsonNode plan = Planning.parse(new String(input.readNBytes(size), StandardCharsets.UTF_8));
      StructType columns = (StructType) StructType.fromJson(new String(input.readNBytes(input.readInt()), StandardCharsets.UTF_8));
      List<byte[]> events = new ArrayList<>();
      for (int left = input.readInt(); left > 0; left--) {
        events.add(input.readNBytes(input.readInt()));
      }
      answer(new Decoders(plan, columns), columns, events, output);
      output.flush();
    }
  }

  private static void answer(Decoders decoders, StructType columns, List<byte[]> events, PrintStream output) {
    List<byte[]> good = new ArrayList<>();
    boolean[] isGood = new boolean[events.size()];
    for (int i = 0; i < isGood.length; i++) {
      isGood[i] = decode(decoders, List.of(events.get(i)));
      if (isGood[i]) {
        good.add(events.get(i));
      }
    }
    if (!good.isEmpty() && !decode(decoders, good)) {
      throw new IllegalStateException("events that are good alone are in doubt together");
    }
    ColumnVector[] vectors = new ColumnVector[columns.size()];
    for (int i = 0; i < vectors.length; i++) {
      vectors[i] = decoders.columns.child(columns.apply(i).name());
    }
    ColumnarBatch batch = new ColumnarBatch(vectors, good.size());
    int row = 0;
    for (boolean each : isGood) {
      StringBuilder line = new StringBuilder();
      if (each) {
        write(columns, batch.getRow(row++), line);
      } else {
        line.append('?');
      }
      output.println(line);
    }
  }

  private static boolean decode(Decoders decoders, List<byte[]> events) {
    int[] starts = new int[events.size()];
    int[] lengths = new int[events.size()];
    int size = 0;
    for (int i = 0; i < starts.length; i++) {
      starts[i] = size;
      lengths[i] = events.get(i).length;
      size += EventColumns.HEADER + lengths[i];
    }
    ByteBuffer data = ByteBuffer.allocate(size);
    for (byte[] event : events) {
      data.putInt(0).putInt(event.length).put(event);
    }
    return decoders.decode(data.flip(), starts, lengths, starts.length);
  }

  private static void write(StructType type, SpecializedGetters row, StringBuilder line) {
    line.append('(');
    for (int i = 0; i < type.size(); i++) {
      write(type.apply(i).dataType(), row, i, line);
      line.append(' ');
    }
    line.append(')');
  }

  private static void write(DataType type, SpecializedGetters from, int at, StringBuilder line) {
    Object value = from.isNullAt(at) ? null : from.get(at, type);
    if (value == null) {
      line.append('n');
    } else if (type instanceof StructType struct) {
      write(struct, from.getStruct(at, struct.size()), line);
    } else if (type instanceof ArrayType array) {
      write(array.elementType(), (ArrayData) value, line);
    } else if (type instanceof MapType map) {
      write(map.keyType(), ((MapData) value).keyArray(), line);
      write(map.valueType(), ((MapData) value).valueArray(), line);
    } else if (value instanceof UTF8String text) {
      line.append(HexFormat.of().formatHex(text.getBytes()));
    } else if (value instanceof byte[] bytes) {
      line.append(HexFormat.of().formatHex(bytes));
    } else if (value instanceof Decimal decimal) {
      line.append(decimal.toJavaBigDecimal().unscaledValue());
    } else if (value instanceof Float number) {
      line.append(Integer.toHexString(Float.floatToIntBits(number)));
    } else if (value instanceof Double number) {
      line.append(Long.toHexString(Double.doubleToLongBits(number)));
    } else {
      line.append(value);
    }
  }

  private static void write(DataType type, ArrayData items, StringBuilder line) {
    line.append('[');
    for (int i = 0; i < items.numElements(); i++) {
      write(type, items, i, line);
      line.append(' ');
    }
    line.append(']');
  }
}
