import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Reads pairs of serialized objects (NAME.theirs, NAME.ours) of a folder and prints for each name whether Java makes the
 * same object of both: the same bytes when it writes them again, or equal ones. Where it does not even make the same
 * of "theirs" twice (the class hashes by identity, and has no equals), it says "unstable".
 */
public final class ReadBack {
    private ReadBack() {
    }

    public static void main(String[] args) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Path.of(args[0]), "*.theirs")) {
            for (Path theirs : files) {
                String name = theirs.toString().substring(0, theirs.toString().length() - ".theirs".length());
                System.out.println(compared(theirs, Path.of(name + ".ours")) + "\t" + Path.of(name).getFileName());
            }
        }
    }

    private static String compared(Path theirs, Path ours) throws IOException {
        Object first;
        try {
            first = read(theirs);
        } catch (Exception | LinkageError e) {
            return "theirs " + e;
        }
        try {
            if (same(first, read(ours))) {
                return "same";
            }
            return same(first, read(theirs)) ? "different" : "unstable";
        } catch (Exception | LinkageError e) {
            return "ours " + e;
        }
    }

    private static boolean same(Object first, Object second) throws IOException {
        return Arrays.equals(written(first), written(second)) || first.equals(second);
    }

    private static Object read(Path file) throws IOException, ClassNotFoundException {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(Files.readAllBytes(file)))) {
            return in.readObject();
        }
    }

    private static byte[] written(Object value) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ObjectOutputStream objects = new ObjectOutputStream(out)) {
            objects.writeObject(value);
        }
        return out.toByteArray();
    }
}
