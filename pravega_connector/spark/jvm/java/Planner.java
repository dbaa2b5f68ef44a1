package pravegaserde.spark;

/** The planner of the driver's Python: it answers requests in JSON by a callback of py4j. */
public interface Planner {
  /** Return the answer as JSON: {"ok": …}, or {"error": …} with the text of a Python error. */
  String call(String request);
}
