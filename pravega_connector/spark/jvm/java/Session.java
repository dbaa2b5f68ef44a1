package pravegaserde.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.TableProvider;

/**
 * Spark's active session, and its Python source. Their classes depend on the version, so they are found by name.
 *
 * <p>Spark 4 has moved the session to another package. Spark 3.5 has no Python source.
 */
final class Session {
  private static final String MOVED = "org.apache.spark.sql.classic.SparkSession";
  private static final String USUAL = "org.apache.spark.sql.SparkSession";
  private static final String PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2";

  /** Spark has data sources in Python. */
  static final boolean HAS_PYTHON = classOf(PYTHON) != null;

  private Session() {}

  /** Return the id of the active session; of a copy, as foreachBatch gets one, the id of the session that was copied. */
  static String id() {
    return (String) call(call(active(), "conf"), "get", "spark.pravegaserde.session", (String) call(active(), "sessionUUID"));
  }

  /** Return the loader of the classes that ADD JAR has added. */
  static Object jarClassLoader() {
    return call(call(active(), "sharedState"), "jarClassLoader");
  }

  /** Return the Python source of a format. Throws ReadException in Spark 3.5. */
  static TableProvider python(String format) {
    if (!HAS_PYTHON) {
      throw new ReadException("[PRAVEGA-UNSUPPORTED-MODE] Spark 3.5 has no data sources in Python, so format(\"" + format + "\") reads only"
          + " events that the JVM reader decodes, with configure(spark, jvm_reader=True): for all else, use read and"
          + " write of pyspark_pravega, see docs/spark/spark-3.5.md");
    }
    try {
      Object source = classOf(PYTHON).getConstructor().newInstance();
      call(source, "setShortName", format);
      return (TableProvider) source;
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static Object active() {
    Class<?> moved = classOf(MOVED);
    try {
      return (moved == null ? Class.forName(USUAL) : moved).getMethod("active").invoke(null);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static Object call(Object owner, String method, String... arguments) {
    Class<?>[] texts = new Class<?>[arguments.length];
    Arrays.fill(texts, String.class);
    try {
      return owner.getClass().getMethod(method, texts).invoke(owner, (Object[]) arguments);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static Class<?> classOf(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException error) {
      return null;
    }
  }
}
