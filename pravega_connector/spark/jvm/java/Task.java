package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.connector.read.InputPartition;

/** Ranges of segments that one task reads, one after the other. */
final class Task implements InputPartition {
  private static final long serialVersionUID = 1L;

  /** Segment store of a segment, the token for it, and when to ask for another one. */
  record Place(String host, int port, byte[] token, double renewal) implements java.io.Serializable {
    /** Return the place in an answer of Python; null if it does not know it. */
    static Place of(JsonNode each) {
      byte[] token = each.get("token").asText().getBytes(StandardCharsets.UTF_8);
      String host = each.get("host").textValue();
      return host == null ? null : new Place(host, each.get("port").asInt(), token, each.get("renewal").asDouble());
    }

    String address() {
      return host + ":" + port;
    }
  }

  /** Range [start, end) of a segment, and the segment store as the driver knows it: place is null if it does not. */
  record Slice(
      String scope, String stream, long segmentId, String segment, long start, long end, Place place,
      long[] places, long[] lows, long[] highs)
      implements java.io.Serializable {}

  final Slice[] slices;
  final long stop;

  private Task(Slice[] slices, long stop) {
    this.slices = slices;
    this.stop = stop;
  }

  static InputPartition[] all(JsonNode tasks) {
    InputPartition[] found = new InputPartition[tasks.size()];
    for (int i = 0; i < found.length; i++) {
      JsonNode slices = tasks.get(i).get("slices");
      Slice[] parts = new Slice[slices.size()];
      for (int j = 0; j < parts.length; j++) {
        parts[j] = slice(slices.get(j));
      }
      JsonNode stop = tasks.get(i).get("stop");
      found[i] = new Task(parts, stop.isNull() ? Long.MAX_VALUE : stop.asLong());
    }
    return found;
  }

  private static Slice slice(JsonNode each) {
    return new Slice(
        each.get("scope").asText(), each.get("stream").asText(), each.get("segment_id").asLong(),
        each.get("segment").asText(), each.get("start").asLong(), each.get("end").asLong(), Place.of(each),
        longs(each.get("places")), longs(each.get("lows")), longs(each.get("highs")));
  }

  private static long[] longs(JsonNode values) {
    return Planning.JSON.convertValue(values, long[].class);
  }
}
