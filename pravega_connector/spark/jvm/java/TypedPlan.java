package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Plan of a typed read, as JSON of the driver's Python: the steps of decoders, and which columns are not decoded. */
record TypedPlan(JsonNode plan) implements java.io.Serializable {
  /** Return the plan, or null for raw events. */
  static TypedPlan of(JsonNode plan) {
    return plan.isNull() ? null : new TypedPlan(plan);
  }

  String format() {
    return plan.get("format").asText();
  }

  /** Return the read as Python has pickled it. */
  String rows() {
    return plan.get("rows").asText();
  }

  boolean isMetadata(String column) {
    return contains(plan.get("metadata"), column);
  }

  /** Return true for the two columns of malformed records. */
  boolean isCorrupt(String column) {
    return contains(plan.get("corrupt"), column);
  }

  /** Return the decoders of the columns that a query uses. */
  Decoders decoders(StructType used) {
    StructType decoded = new StructType();
    for (StructField field : used.fields()) {
      if (!isMetadata(field.name()) && !isCorrupt(field.name())) {
        decoded = decoded.add(field);
      }
    }
    return new Decoders(plan, decoded);
  }

  private static boolean contains(JsonNode names, String column) {
    return Planning.JSON.convertValue(names, List.class).contains(column);
  }
}
