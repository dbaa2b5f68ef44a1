import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.stream.impl.GroupBytes;
import io.pravega.client.stream.impl.GroupValues;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * States of reader groups and their updates, as the Java client's own classes make, read and apply them; no server.
 *
 * <pre>
 *   {"do": "make", "seed": N, "count": N}             random values: [{"kind", "hex", "value"}...]
 *   {"do": "read", "kind": KIND, "hex": [HEX...]}     what each is: [{"value", "hex": written again} or {"why"}...]
 *   {"do": "apply", "runs": [[HEX...]...]}            what becomes of a group, from an initial value on, by updates
 * </pre>
 *
 * Asked as JsonPeer says. Values are as GroupBytes says.
 */
public final class GroupStatePeer extends JsonPeer {
    private GroupStatePeer() {
    }

    public static void main(String[] args) throws IOException {
        new GroupStatePeer().serve();
    }

    @Override
    Object answer(JsonObject request) {
        List<Object> answers = new ArrayList<>();
        switch (text(request, "do")) {
            case "make" -> GroupValues.make(request.get("seed").getAsLong(), request.get("count").getAsInt())
                    .forEach(made -> answers.add(Map.of("kind", made.kind(), "hex",
                            GroupBytes.write(made.kind(), made.value()), "value", GroupBytes.plain(made.value()))));
            case "read" -> texts(request.get("hex")).forEach(hex -> answers.add(read(text(request, "kind"), hex)));
            case "apply" -> request.get("runs").getAsJsonArray().forEach(run -> answers.add(GroupBytes.apply(texts(run))));
            default -> throw unknown(request);
        }
        return answers;
    }

    private static Map<String, Object> read(String kind, String hex) {
        try {
            Object value = GroupBytes.read(kind, hex);
            return Map.of("value", GroupBytes.plain(value), "hex", GroupBytes.write(kind, value));
        } catch (RuntimeException error) {
            return Map.of("why", error.toString());
        }
    }

    private static List<String> texts(JsonElement array) {
        List<String> texts = new ArrayList<>();
        array.getAsJsonArray().forEach(text -> texts.add(text.getAsString()));
        return texts;
    }
}
