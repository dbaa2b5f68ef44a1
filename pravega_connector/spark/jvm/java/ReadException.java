package pravegaserde.spark;

/** Error of a read, with the text of the Python error that has its code. */
final class ReadException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ReadException(String message) {
    super(message);
  }
}
