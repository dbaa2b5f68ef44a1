package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.types.StructType;
import scala.Product;

/** Builder of a scan: it has the columns and the filters on metadata columns that Spark passes down. */
final class SegmentScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownFilters {
  /** Filters of an attribute and a value, or several values. */
  private static final Set<String> COMPARISONS = Set.of(
      "In", "EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual");
  private final ObjectNode plan;
  private final TypedPlan typed;
  private final ArrayNode pushed = Planning.JSON.createArrayNode();
  private final List<Filter> known = new ArrayList<>();
  private StructType columns;

  SegmentScanBuilder(StructType schema, ObjectNode plan, TypedPlan typed) {
    this.plan = plan;
    this.typed = typed;
    this.columns = schema;
  }

  @Override
  public void pruneColumns(StructType required) {
    columns = required;
  }

  /** Return all filters: Spark evaluates each one, also those by which parts of segments are left out. */
  @Override
  public Filter[] pushFilters(Filter[] filters) {
    for (Filter filter : filters) {
      ObjectNode found = encoded(filter);
      if (found != null) {
        pushed.add(found);
        known.add(filter);
      }
    }
    return filters;
  }

  @Override
  public Filter[] pushedFilters() {
    return known.toArray(new Filter[0]);
  }

  private static ObjectNode encoded(Filter filter) {
    if (filter instanceof Not not) {
      ObjectNode child = encoded(not.child());
      // An offset that is excluded leaves out no part of a segment.
      boolean excludes = child == null || child.get("attribute").asText().equals("offset");
      return excludes ? null : Planning.JSON.createObjectNode().put("kind", "Not").set("child", child);
    }
    return filter instanceof Product parts && COMPARISONS.contains(parts.productPrefix())
        ? encoded(parts.productPrefix(), (String) parts.productElement(0), parts.productElement(1))
        : null;
  }

  private static ObjectNode encoded(String kind, String attribute, Object value) {
    Object[] values = value instanceof Object[] many ? many : new Object[] {value};
    if (!Arrays.stream(values).allMatch(each -> each instanceof Long || each instanceof String)) {
      return null;
    }
    ObjectNode node = Planning.JSON.createObjectNode().put("kind", kind).put("attribute", attribute);
    return node.set("value", Planning.JSON.valueToTree(value));
  }

  @Override
  public Scan build() {
    plan.set("filters", (JsonNode) pushed);
    return new SegmentScan(columns, plan, typed, pushedFilters());
  }
}
