package pravegaserde.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.api.python.PythonUtils;

/**
 * Error of a read or a write, with the text of the Python error that has its code. Its error class is the Python
 * source's. Spark 3.5 has none, so there it is one that shows only the text.
 */
final class ReadException extends SparkRuntimeException {
  private static final long serialVersionUID = 1L;
  private static final String ERROR = Session.HAS_PYTHON ? "PYTHON_DATA_SOURCE_ERROR" : "_LEGACY_ERROR_TEMP_2273";

  private final String action;
  private final String text;

  ReadException(String message) {
    this("read", message);
  }

  ReadException(String action, String message) {
    super(ERROR, parameters(action, message), null, new QueryContext[0], "");
    this.action = action;
    text = message;
  }

  private static scala.collection.immutable.Map<String, String> parameters(String action, String message) {
    Map<String, String> named = Map.of("action", action, "type", "pravega", "msg", message + "\n");
    return PythonUtils.toScalaMap(Session.HAS_PYTHON ? named : Map.of("message", message));
  }

  /** Travel to the driver as Spark's own class: the driver reads the errors of tasks without the jars of the session. */
  private Object writeReplace() {
    SparkRuntimeException known = new SparkRuntimeException(ERROR, parameters(action, text), null, new QueryContext[0], "");
    known.setStackTrace(getStackTrace());
    return known;
  }
}
