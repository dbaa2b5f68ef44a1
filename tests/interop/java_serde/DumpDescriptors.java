import java.io.ObjectStreamClass;
import java.io.ByteArrayOutputStream;
import java.io.ObjectOutputStream;
import java.util.HexFormat;

/** Prints, for each class named on the command line, the serialized ObjectStreamClass of that class in hex. */
public final class DumpDescriptors {
    public static void main(String[] names) throws Exception {
        for (String name : names) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(ObjectStreamClass.lookupAny(Class.forName(name)));
            }
            System.out.println(name + " " + HexFormat.of().formatHex(bytes.toByteArray()));
        }
    }
}
