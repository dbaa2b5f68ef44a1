import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.StreamCutImpl;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Stream cuts as the Java client writes them: one JSON object a line, {stream, positions, text, hex}.
 * java -cp 'pravega-client 0.13.0 with its dependencies' StreamCuts.java > ../stream_cuts.jsonl
 */
public class StreamCuts {
    public static void main(String[] args) {
        put("s/t", 0, 0);
        put("s/t", (1L << 32) | 63, 63, (1L << 32) | 64, 16384, 0, -1, (3L << 32) | 7, 1L << 40);
        put("_system/_MARK.a-b", 0, 31, 1, 32, 2, 8191, 3, 8192, 4, (1L << 29) - 1, 5, 1L << 29, 6, (1L << 61) - 2);
        put("scope/ids", 63, 1, 64, 2, 16383, 3, 16384, 4, (1L << 30) - 1, 5, 1L << 30, 6, 0x7fffffffL, 7,
            ((1L << 30) - 1) << 32, 8);
        long[] many = new long[400];
        for (int i = 0; i < many.length / 2; i++) {
            many[2 * i] = ((long) (i / 7) << 32) | i;
            many[2 * i + 1] = i * 1_000_003L;
        }
        put("scope/many", many);
    }

    private static void put(String stream, long... idsAndOffsets) {
        Stream of = Stream.of(stream);
        Map<Segment, Long> positions = new LinkedHashMap<>();
        StringBuilder json = new StringBuilder("{\"stream\": \"" + stream + "\", \"positions\": {");
        for (int i = 0; i < idsAndOffsets.length; i += 2) {
            positions.put(new Segment(of.getScope(), of.getStreamName(), idsAndOffsets[i]), idsAndOffsets[i + 1]);
            json.append(i == 0 ? "" : ", ").append('"').append(idsAndOffsets[i]).append("\": ").append(idsAndOffsets[i + 1]);
        }
        StreamCut cut = new StreamCutImpl(of, positions);
        ByteBuffer bytes = cut.toBytes();
        StringBuilder hex = new StringBuilder();
        while (bytes.hasRemaining()) {
            hex.append(String.format("%02x", bytes.get()));
        }
        System.out.println(json + "}, \"text\": \"" + cut.asText() + "\", \"hex\": \"" + hex + "\"}");
    }
}
