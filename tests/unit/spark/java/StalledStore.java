package pravegaserde.spark;

import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** Write over TLS to a port whose server reads nothing, and print the error. */
public final class StalledStore {
  public static void main(String[] given) throws Exception {
    StoreLink.Tls tls = new StoreLink.Tls(Files.readString(Path.of(given[1])), null, true);
    StoreLink link = StoreLink.open("localhost", Integer.parseInt(given[0]), tls, 2);
    try {
      link.write(ByteBuffer.allocate(64 << 20));
    } catch (SocketTimeoutException error) {
      System.out.println(error.getMessage());
    }
    link.close();
  }
}
