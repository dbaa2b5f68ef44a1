package pravegaserde.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.api.python.PythonUtils;

/** Error of a read, with the text of the Python error that has its code. Its error class is the Python source's. */
final class ReadException extends SparkRuntimeException {
  private static final long serialVersionUID = 1L;

  ReadException(String message) {
    super(
        "PYTHON_DATA_SOURCE_ERROR",
        PythonUtils.toScalaMap(Map.of("action", "read", "type", "pravega", "msg", message + "\n")),
        null,
        new QueryContext[0],
        "");
  }
}
