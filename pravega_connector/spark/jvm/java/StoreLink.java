package pravegaserde.spark;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.UUID;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.apache.spark.TaskContext;

/** Connection to a segment store. Each wait ends after {@code quiet} seconds without a byte. */
abstract class StoreLink implements AutoCloseable {
  private static final int HELLO = -127;
  private static final int SETUP_APPEND = 1;
  static final int APPEND_SETUP = 2;
  private static final int APPEND_BLOCK = 3;
  private static final int APPEND_BLOCK_END = 4;
  static final int DATA_APPENDED = 7;
  private static final int READ_SEGMENT = 9;
  static final int KEEP_ALIVE = 100;
  private static final int PROTOCOL_VERSION = 16;
  private static final int OLDEST_PROTOCOL_VERSION = 5;

  private static final int SLICE_MILLIS = 1000;

  double quiet;

  /** Read until {@code into} is full. */
  abstract void read(ByteBuffer into) throws IOException;

  abstract void write(ByteBuffer from) throws IOException;

  @Override
  public abstract void close();

  /** Settings of TLS, from the configuration of the Python client. */
  record Tls(String authorities, String serverName, boolean checksHost) {}

  static StoreLink open(String host, int port, Tls tls, double quiet) throws IOException {
    IOException last = null;
    InetAddress[] addresses = InetAddress.getAllByName(host);
    for (InetAddress address : addresses) {
      InetSocketAddress at = new InetSocketAddress(address, port);
      try {
        StoreLink link = tls == null ? new Plain(at, quiet / addresses.length) : new Secured(at, host, tls, quiet);
        link.quiet = quiet;
        return link;
      } catch (IOException error) {
        last = error;
      }
    }
    throw last;
  }

  /** Exchange Hello, the first message of both sides. Throws ReadException if they have no version in common. */
  void greet(String place, String action) throws IOException {
    write(ByteBuffer.allocate(16).putInt(HELLO).putInt(8).putInt(PROTOCOL_VERSION)
        .putInt(OLDEST_PROTOCOL_VERSION).flip());
    ByteBuffer answer = ByteBuffer.allocate(8);
    read(answer);
    if (answer.getInt(0) != HELLO || answer.getInt(4) != 8) {
      throw new IOException("the segment store at " + place + " did not begin with Hello");
    }
    read(answer.clear());
    if (answer.getInt(4) > PROTOCOL_VERSION || answer.getInt(0) < OLDEST_PROTOCOL_VERSION) {
      throw new ReadException(action, "the segment store at " + place + " speaks versions " + answer.getInt(4) + " to "
          + answer.getInt(0) + " of the wire protocol, this client " + OLDEST_PROTOCOL_VERSION + " to "
          + PROTOCOL_VERSION + "; upgrade the older of the two");
    }
  }

  /** Request {@code length} bytes of a segment. The offset is the id of the request. */
  void requestRead(byte[] segment, long offset, int length, byte[] token) throws IOException {
    int body = 2 + segment.length + 8 + 4 + 2 + token.length + 8;
    ByteBuffer message = ByteBuffer.allocate(8 + body).putInt(READ_SEGMENT).putInt(body);
    message.putShort((short) segment.length).put(segment).putLong(offset).putInt(length);
    message.putShort((short) token.length).put(token).putLong(offset);
    write(message.flip());
  }

  /** Bind a writer to a segment: its appends follow. */
  void setUpAppend(long request, UUID writer, byte[] segment, byte[] token) throws IOException {
    int body = 8 + 16 + 2 + segment.length + 2 + token.length;
    ByteBuffer message = ByteBuffer.allocate(8 + body).putInt(SETUP_APPEND).putInt(body).putLong(request);
    message.putLong(writer.getMostSignificantBits()).putLong(writer.getLeastSignificantBits());
    message.putShort((short) segment.length).put(segment).putShort((short) token.length).put(token);
    write(message.flip());
  }

  /** Append {@code count} events in one step; {@code last} is the number of the last one. */
  void append(UUID writer, ByteBuffer events, int count, long last, long request) throws IOException {
    long high = writer.getMostSignificantBits();
    long low = writer.getLeastSignificantBits();
    int size = events.remaining();
    write(ByteBuffer.allocate(24).putInt(APPEND_BLOCK).putInt(16 + size).putLong(high).putLong(low).flip());
    write(events);
    write(ByteBuffer.allocate(52).putInt(APPEND_BLOCK_END).putInt(44).putLong(high).putLong(low).putInt(size).putInt(0)
        .putInt(count).putLong(last).putLong(request).flip());
  }

  /** Throws TaskKilledException if Spark has killed the task, InterruptedIOException if this thread was interrupted. */
  static void checkTask() throws InterruptedIOException {
    TaskContext task = TaskContext.get();
    if (task != null) {
      task.killTaskIfInterrupted();
    }
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedIOException("the task was interrupted");
    }
  }

  private static final class Plain extends StoreLink {
    private final SocketChannel channel;
    private final Selector selector;
    private final SelectionKey key;

    Plain(InetSocketAddress address, double quiet) throws IOException {
      this.quiet = quiet;
      channel = SocketChannel.open();
      selector = Selector.open();
      try {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.configureBlocking(false);
        key = channel.register(selector, SelectionKey.OP_CONNECT);
        if (!channel.connect(address)) {
          do {
            await(SelectionKey.OP_CONNECT);
          } while (!channel.finishConnect());
        }
      } catch (IOException | RuntimeException error) {
        close();
        throw error;
      }
    }

    private void await(int operation) throws IOException {
      key.interestOps(operation);
      long end = System.nanoTime() + (long) (quiet * 1e9);
      while (true) {
        long left = (end - System.nanoTime()) / 1_000_000;
        if (left <= 0) {
          throw new SocketTimeoutException("no answer for " + Math.round(quiet) + " s");
        }
        int ready = selector.select(Math.min(left, SLICE_MILLIS));
        selector.selectedKeys().clear();
        if (ready > 0) {
          return;
        }
        checkTask();
      }
    }

    @Override
    void read(ByteBuffer into) throws IOException {
      while (into.hasRemaining()) {
        int count = channel.read(into);
        if (count < 0) {
          throw new EOFException("the segment store closed the connection");
        }
        if (count == 0) {
          await(SelectionKey.OP_READ);
        }
      }
    }

    @Override
    void write(ByteBuffer from) throws IOException {
      while (from.hasRemaining()) {
        if (channel.write(from) == 0) {
          await(SelectionKey.OP_WRITE);
        }
      }
    }

    @Override
    public void close() {
      try {
        channel.close();
        selector.close();
      } catch (IOException ignored) {
        // The connection is given up in any case.
      }
    }
  }

  private static final class Secured extends StoreLink {
    private static final Timer WATCH = new Timer("pravega-tls-watch", true);

    private final Socket plain = new Socket();
    private final SSLSocket socket;
    private final byte[] chunk = new byte[1 << 16];
    private volatile long progress;

    Secured(InetSocketAddress address, String host, Tls tls, double quiet) throws IOException {
      this.quiet = quiet;
      String name = tls.serverName() == null ? host : tls.serverName();
      try {
        plain.setTcpNoDelay(true);
        plain.connect(address, millis(quiet));
        socket = (SSLSocket) context(tls).getSocketFactory().createSocket(plain, name, address.getPort(), true);
        socket.setSoTimeout(millis(quiet));
        if (tls.checksHost()) {
          SSLParameters parameters = socket.getSSLParameters();
          parameters.setEndpointIdentificationAlgorithm("HTTPS");
          socket.setSSLParameters(parameters);
        }
        socket.startHandshake();
      } catch (IOException error) {
        plain.close();
        throw error;
      }
    }

    private static int millis(double seconds) {
      return Math.max((int) (1000 * Math.min(seconds, 86_400)), 1);
    }

    private static SSLContext context(Tls tls) throws IOException {
      try {
        SSLContext context = SSLContext.getInstance("TLS");
        if (tls.authorities() == null) {
          context.init(null, null, null);
          return context;
        }
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        List<Certificate> found = new ArrayList<>(CertificateFactory.getInstance("X.509")
            .generateCertificates(new ByteArrayInputStream(tls.authorities().getBytes("UTF-8"))));
        for (int i = 0; i < found.size(); i++) {
          trusted.setCertificateEntry("authority " + i, found.get(i));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        context.init(null, managers.getTrustManagers(), null);
        return context;
      } catch (GeneralSecurityException error) {
        throw new IOException("TLS cannot be set up: " + error.getMessage(), error);
      }
    }

    @Override
    void read(ByteBuffer into) throws IOException {
      long end = System.nanoTime() + (long) (quiet * 1e9);
      while (into.hasRemaining()) {
        socket.setSoTimeout(Math.min(millis(quiet), SLICE_MILLIS));
        int count;
        try {
          count = socket.getInputStream().read(chunk, 0, Math.min(chunk.length, into.remaining()));
        } catch (SocketTimeoutException error) {
          checkTask();
          if (System.nanoTime() >= end) {
            throw error;
          }
          continue;
        }
        if (count < 0) {
          throw new EOFException("the segment store closed the connection");
        }
        into.put(chunk, 0, count);
        end = System.nanoTime() + (long) (quiet * 1e9);
      }
    }

    /** A blocked write ends only with its socket: a timer closes it after {@code quiet} seconds, or with the task. */
    @Override
    void write(ByteBuffer from) throws IOException {
      TaskContext task = TaskContext.get();
      progress = System.nanoTime();
      TimerTask watch = new TimerTask() {
        @Override
        public void run() {
          if ((System.nanoTime() - progress) / 1e9 > quiet || task != null && task.isInterrupted()) {
            close();
          }
        }
      };
      WATCH.schedule(watch, SLICE_MILLIS, SLICE_MILLIS);
      try {
        while (from.hasRemaining()) {
          int count = Math.min(chunk.length, from.remaining());
          from.get(chunk, 0, count);
          socket.getOutputStream().write(chunk, 0, count);
          progress = System.nanoTime();
        }
      } catch (IOException error) {
        checkTask();
        if (plain.isClosed()) {
          throw new SocketTimeoutException("a write made no progress for " + Math.round(quiet) + " s");
        }
        throw error;
      } finally {
        watch.cancel();
      }
    }

    /** Close without TLS's last message, which would wait for a store that reads nothing. */
    @Override
    public void close() {
      try {
        plain.close();
      } catch (IOException ignored) {
        // The connection is given up in any case.
      }
    }
  }
}
