package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@code format("pravega")} where this jar is loaded: the JVM reads and writes what it can, the Python source all else.
 *
 * <p>The Python driver decides which one, by the options.
 */
public final class PravegaSource implements TableProvider, DataSourceRegister {
  private static final Logger LOG = LoggerFactory.getLogger(PravegaSource.class);

  private TableProvider python;

  /** Return the Python source, which keeps what it has asked its process. */
  private synchronized TableProvider python() {
    if (python == null) {
      python = Session.python(shortName());
    }
    return python;
  }

  @Override
  public String shortName() {
    return "pravega";
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    if (!Planning.isAvailable()) {
      return python().inferSchema(options);
    }
    JsonNode schema = Planning.ask(Planning.request("schema", Session.id(), options.asCaseSensitiveMap(), null));
    return schema.isNull() ? python().inferSchema(options) : (StructType) StructType.fromJson(schema.asText());
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new PravegaTable(schema, () -> python().getTable(schema, partitioning, properties));
  }

  /** A stream, or several. The Python table is created when it is needed: that starts a Python process. */
  private static final class PravegaTable implements SupportsRead, SupportsWrite {
    private final StructType schema;
    private final Supplier<Table> source;
    private final String session = Session.id();
    private Table python;

    PravegaTable(StructType schema, Supplier<Table> source) {
      this.schema = schema;
      this.source = source;
    }

    private synchronized Table python() {
      if (python == null) {
        python = source.get();
      }
      return python;
    }

    @Override
    public String name() {
      return "pravega";
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(
          TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ,
          TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      if (Planning.isAvailable()) {
        ObjectNode request = Planning.request("accepts", session, options.asCaseSensitiveMap(), schema.json());
        JsonNode accepted = Planning.ask(request);
        if (!accepted.isNull()) {
          ObjectNode plan = request.set("streams", accepted.get("streams"));
          return new SegmentScanBuilder(schema, plan, TypedPlan.of(accepted.get("decoder")));
        }
      } else {
        LOG.info("events are read by Python, not inside the JVM: the driver is not a Python program that has called"
            + " configure(spark)");
      }
      return ((SupportsRead) python()).newScanBuilder(options);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      if (Planning.isAvailable()) {
        Map<String, String> options = info.options().asCaseSensitiveMap();
        ObjectNode request = Planning.request("write_accepts", session, options, info.schema().json());
        request.put("active", Session.id()); // a batch write creates its table before its session is active
        JsonNode accepted = Planning.ask(request);
        if (!accepted.isNull()) {
          return new PravegaWrite(request, accepted, () -> ((SupportsWrite) python()).newWriteBuilder(info));
        }
      }
      return ((SupportsWrite) python()).newWriteBuilder(info);
    }
  }
}
