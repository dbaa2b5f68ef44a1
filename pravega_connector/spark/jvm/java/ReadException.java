package pravegaserde.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.api.python.PythonUtils;

/**
 * Error of a read, with the text of the Python error that has its code. Its error class is the Python source's; Spark 3.5
 * has none, so there it is one that shows only the text.
 */
final class ReadException extends SparkRuntimeException {
  private static final long serialVersionUID = 1L;
  private static final String ERROR = Session.HAS_PYTHON ? "PYTHON_DATA_SOURCE_ERROR" : "_LEGACY_ERROR_TEMP_2273";

  private final String text;

  ReadException(String message) {
    super(ERROR, parameters(message), null, new QueryContext[0], "");
    text = message;
  }

  private static scala.collection.immutable.Map<String, String> parameters(String message) {
    Map<String, String> named = Map.of("action", "read", "type", "pravega", "msg", message + "\n");
    return PythonUtils.toScalaMap(Session.HAS_PYTHON ? named : Map.of("message", message));
  }

  /** Travel to the driver as Spark's own class: the driver reads the errors of tasks without the jars of the session. */
  private Object writeReplace() {
    SparkRuntimeException known = new SparkRuntimeException(ERROR, parameters(text), null, new QueryContext[0], "");
    known.setStackTrace(getStackTrace());
    return known;
  }
}
