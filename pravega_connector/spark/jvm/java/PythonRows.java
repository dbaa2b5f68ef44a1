package pravegaserde.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Base64;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows of a batch that the project's Python has decoded: an Arrow stream. */
final class PythonRows implements AutoCloseable {
  private final BufferAllocator allocator;
  private final ArrowStreamReader stream;
  private final ColumnVector[] columns;

  private PythonRows(byte[] rows) throws IOException {
    allocator = ArrowUtils.rootAllocator().newChildAllocator("pravega", 0, Long.MAX_VALUE);
    stream = new ArrowStreamReader(new ByteArrayInputStream(rows), allocator);
    columns = stream.getVectorSchemaRoot().getFieldVectors().stream()
        .map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
  }

  /**
   * Let Python decode the events of a batch into the columns that the query uses, and store its dead letters, each once
   * for the range from {@code start} to {@code end}. Throws the error of an event.
   */
  static PythonRows of(
      EventColumns rows, TypedPlan plan, StructType columns, Support support, long start, long end)
      throws IOException {
    int last = rows.count - 1;
    byte[] events = new byte[rows.starts[last] + EventColumns.HEADER + rows.lengths[last]];
    rows.data.get(0, events);
    Task.Slice slice = rows.slice;
    ObjectNode request = Planning.request("decode").put("rows", plan.rows()).put("columns", columns.json());
    request.put("scope", slice.scope()).put("stream", slice.stream()).put("segment_id", slice.segmentId());
    request.put("offset", rows.base).put("data", Base64.getEncoder().encodeToString(events));
    request.put("start", start).put("end", end);
    TaskContext task = TaskContext.get();
    request.put("query", task == null ? null : task.getLocalProperty("sql.streaming.queryId"));
    request.set("places", Planning.JSON.valueToTree(slice.places()));
    request.set("lows", Planning.JSON.valueToTree(slice.lows()));
    request.set("highs", Planning.JSON.valueToTree(slice.highs()));
    return new PythonRows(Base64.getDecoder().decode(support.ask(request).get("rows").asText()));
  }

  /** Return the next rows, or null after the last ones. */
  ColumnarBatch next() throws IOException {
    return stream.loadNextBatch() ? new ColumnarBatch(columns, stream.getVectorSchemaRoot().getRowCount()) : null;
  }

  /** Close rows, if there are some, and return null. */
  static PythonRows closed(PythonRows rows) {
    if (rows != null) {
      rows.close();
    }
    return null;
  }

  @Override
  public void close() {
    try {
      stream.close(); // frees the columns
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    } finally {
      allocator.close();
    }
  }
}
