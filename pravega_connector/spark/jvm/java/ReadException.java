package pravegaserde.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.api.python.PythonUtils;

/** Error of a read, with the text of the Python error that has its code. Its error class is the Python source's. */
final class ReadException extends SparkRuntimeException {
  private static final long serialVersionUID = 1L;
  private static final String ERROR = "PYTHON_DATA_SOURCE_ERROR";

  private final String text;

  ReadException(String message) {
    super(ERROR, parameters(message), null, new QueryContext[0], "");
    text = message;
  }

  private static scala.collection.immutable.Map<String, String> parameters(String message) {
    return PythonUtils.toScalaMap(Map.of("action", "read", "type", "pravega", "msg", message + "\n"));
  }

  /** Travel to the driver as Spark's own class: the driver reads the errors of tasks without the jars of the session. */
  private Object writeReplace() {
    SparkRuntimeException known = new SparkRuntimeException(ERROR, parameters(text), null, new QueryContext[0], "");
    known.setStackTrace(getStackTrace());
    return known;
  }
}
