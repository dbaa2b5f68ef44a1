package pravegaserde.tests;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/** Sink that appends each row to a file at once: the number of its batch, and the row as JSON. */
public final class RowsInFile extends ForeachWriter<Row> {
  private static final long serialVersionUID = 1L;

  private final String file;
  private long batch;

  public RowsInFile(String file) {
    this.file = file;
  }

  @Override
  public boolean open(long partition, long batch) {
    this.batch = batch;
    return true;
  }

  @Override
  public void process(Row row) {
    synchronized (RowsInFile.class) {
      try {
        String line = "[" + batch + ", " + row.json() + "]\n";
        Files.write(Path.of(file), line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.APPEND);
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  @Override
  public void close(Throwable error) {}
}
