package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/**
 * Decoders of the events of a read: one for each header that the plan knows, or one for all events without a header.
 *
 * <p>A header is that of a schema registry, with the id of the writer's schema. All decoders add to the same columns.
 */
final class Decoders {
  final Vectors.Structs columns;
  private final Known[] known;

  /** Decoder of the events that begin with a header. No header is the beginning of another one. */
  private record Known(byte[] header, Decoder decoder) {
    boolean begins(byte[] data, int start, int stop) {
      int end = start + header.length;
      return end <= stop && Arrays.equals(data, start, end, header, 0, header.length);
    }
  }

  /** Prepare the decoders of a plan for the columns that a query uses. */
  Decoders(JsonNode plan, StructType wanted) {
    columns = new Vectors.Structs(wanted, new Vectors.Bytes());
    List<Known> found = new ArrayList<>();
    for (JsonNode steps : plan.get("decoders")) {
      Decoder decoder = Decoder.of(steps, columns);
      steps.get("headers").forEach(each -> found.add(new Known(HexFormat.of().parseHex(each.asText()), decoder)));
    }
    known = found.toArray(Known[]::new);
  }

  /** Decode the events at these positions. Return false if one of them is in doubt: the columns are then undefined. */
  boolean decode(ByteBuffer from, int[] starts, int[] lengths, int count) {
    columns.clear();
    int first = columns.bytes.load(from, starts[count - 1] + EventColumns.HEADER + lengths[count - 1]);
    try {
      for (int i = 0; i < count; i++) {
        int start = first + starts[i] + EventColumns.HEADER;
        int stop = start + lengths[i];
        Known of = of(columns.bytes.data, start, stop);
        of.decoder.decode(start + of.header.length, stop);
      }
      return true;
    } catch (Decoder.Doubt | IndexOutOfBoundsException doubt) {
      return false;
    }
  }

  /** Return the decoder of an event, and put it first: the next event mostly has the same header. */
  private Known of(byte[] data, int start, int stop) {
    for (int i = 0; i < known.length; i++) {
      Known each = known[i];
      if (each.begins(data, start, stop)) {
        System.arraycopy(known, 0, known, 1, i);
        known[0] = each;
        return each;
      }
    }
    throw Decoder.doubt();
  }
}
