package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Supplier;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.WriteTaskResult;

/** Write by the JVM. The driver's Python prepares and commits it. It passes a kind of query that it does not accept to the Python writer. */
final class PravegaWrite implements WriteBuilder, SupportsTruncate, Write, BatchWrite, StreamingWrite {
  private final ObjectNode plan;
  private final JsonNode accepted;
  private final Supplier<WriteBuilder> python;
  private boolean truncates;
  private JsonNode begun;

  /** {@code accepted} says which kinds of query the JVM can do. */
  PravegaWrite(ObjectNode plan, JsonNode accepted, Supplier<WriteBuilder> python) {
    this.plan = plan;
    this.accepted = accepted;
    this.python = python;
  }

  @Override
  public WriteBuilder truncate() {
    truncates = true;
    return this;
  }

  @Override
  public Write build() {
    return this;
  }

  private Write byPython() {
    WriteBuilder builder = python.get();
    return (truncates ? ((SupportsTruncate) builder).truncate() : builder).build();
  }

  @Override
  public BatchWrite toBatch() {
    return accepted.get("batch").asBoolean() && !truncates ? this : byPython().toBatch();
  }

  @Override
  public StreamingWrite toStreaming() {
    return accepted.get("stream").asBoolean() ? this : byPython().toStreaming();
  }

  @Override
  public String description() {
    return "pravega, written by the JVM: " + accepted.get("streams").asText();
  }

  @Override
  public String toString() {
    return description();
  }

  @Override
  public boolean useCommitCoordinator() {
    return true;
  }

  private Factory begin(boolean streaming) {
    begun = Planning.ask(plan.deepCopy().put("do", "write_begin").put("streaming", streaming));
    return new Factory(begun.toString());
  }

  private void end(String action, WriterCommitMessage[] messages, long batch) {
    ObjectNode request = Planning.request(action).put("batch", batch);
    request.set("support", begun.get("support"));
    for (WriterCommitMessage message : messages) {
      request.withArray("messages").add(message == null ? null : (String) ((WriteTaskResult) message).commitMsg().obj());
    }
    Planning.ask(request);
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return begin(false);
  }

  @Override
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return begin(true);
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    end("write_commit", messages, -1);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    abort(-1, messages);
  }

  @Override
  public void commit(long batch, WriterCommitMessage[] messages) {
    end("write_commit", messages, batch);
  }

  @Override
  public void abort(long batch, WriterCommitMessage[] messages) {
    if (begun != null) {
      end("write_abort", messages, batch);
    }
  }

  /** Message of a task in a class of Spark: the driver may read it without the jars of the session. */
  static WriterCommitMessage message(String text) {
    return new WriteTaskResult(new TaskCommitMessage(text), null);
  }

  private record Factory(String plan) implements DataWriterFactory, StreamingDataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new TaskWriter(Planning.parse(plan));
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task, long batch) {
      return createWriter(partition, task);
    }
  }
}
