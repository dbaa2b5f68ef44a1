package pravegaserde.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Base64;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
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

  PythonRows(byte[] rows) throws IOException {
    allocator = ArrowUtils.rootAllocator().newChildAllocator("pravega", 0, Long.MAX_VALUE);
    stream = new ArrowStreamReader(new ByteArrayInputStream(rows), allocator);
    columns = stream.getVectorSchemaRoot().getFieldVectors().stream()
        .map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
  }

  /** Return a request for the rows of the events of a batch, with the columns that the query uses. */
  static ObjectNode request(EventColumns rows, String plan, StructType columns) {
    int last = rows.count - 1;
    byte[] events = new byte[rows.starts[last] + EventColumns.HEADER + rows.lengths[last]];
    rows.data.get(0, events);
    ObjectNode request = Planning.request("decode").put("rows", plan).put("columns", columns.json());
    return request.put("offset", rows.base).put("data", Base64.getEncoder().encodeToString(events));
  }

  /** Return the next rows, or null after the last ones. */
  ColumnarBatch next() throws IOException {
    if (!stream.loadNextBatch()) {
      return null;
    }
    return new ColumnarBatch(columns, stream.getVectorSchemaRoot().getRowCount());
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
