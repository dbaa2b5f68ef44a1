import com.google.gson.JsonObject;
import io.pravega.client.ByteStreamClientFactory;
import io.pravega.client.byteStream.ByteStreamReader;
import io.pravega.client.byteStream.ByteStreamWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * What an ordinary Java application does with streams of bytes, for the interoperability tests.
 *
 * <pre>
 *   {"do": "write", "file": F, "piece": N}     appends a file's bytes, N at a time, and flushes; the offset behind them
 *   {"do": "read", "file": F, "at": O, "count": N}  reads N bytes from an offset on into a file; [head, offset behind, tail]
 *   {"do": "seal"}                             the stream takes no more
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class BytePeer extends JsonPeer {
    private BytePeer() {
    }

    public static void main(String[] args) throws IOException {
        new BytePeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        String stream = text(request, "stream");
        try (ByteStreamClientFactory factory =
                ByteStreamClientFactory.withScope(text(request, "scope"), config(request))) {
            return switch (text(request, "do")) {
                case "write" -> write(factory, stream, request);
                case "read" -> read(factory, stream, request);
                case "seal" -> {
                    try (ByteStreamWriter writer = factory.createByteStreamWriter(stream)) {
                        writer.closeAndSeal();
                    }
                    yield true;
                }
                default -> throw unknown(request);
            };
        }
    }

    private static long write(ByteStreamClientFactory factory, String stream, JsonObject request) throws IOException {
        byte[] data = Files.readAllBytes(Path.of(text(request, "file")));
        int piece = request.get("piece").getAsInt();
        try (ByteStreamWriter writer = factory.createByteStreamWriter(stream)) {
            for (int at = 0; at < data.length; at += piece) {
                writer.write(data, at, Math.min(piece, data.length - at));
            }
            writer.flush();
            return writer.fetchTailOffset();
        }
    }

    private static List<Long> read(ByteStreamClientFactory factory, String stream, JsonObject request)
            throws IOException {
        byte[] data = new byte[request.get("count").getAsInt()];
        try (ByteStreamReader reader = factory.createByteStreamReader(stream)) {
            reader.seekToOffset(request.get("at").getAsLong());
            int filled = 0;
            while (filled < data.length) {
                int count = reader.read(data, filled, data.length - filled);
                if (count < 0) {
                    throw new IOException("the stream ends after " + filled + " bytes");
                }
                filled += count;
            }
            Files.write(Path.of(text(request, "file")), data);
            return List.of(reader.fetchHeadOffset(), reader.getOffset(), reader.fetchTailOffset());
        }
    }
}
