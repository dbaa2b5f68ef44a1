import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;

/** Writes an object of each class here into a folder: their writeObject does not begin with defaultWriteObject. */
public final class OwnOrders {
    private OwnOrders() {
    }

    /** Objects only, instead of its fields. */
    static class Objects_ implements Serializable {
        private static final long serialVersionUID = 1;
        String first = "a";
        Object second = "b";

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.writeInt(7);
            out.writeObject(first);
        }

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.readInt();
            first = (String) in.readObject();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Objects_ && Objects.equals(first, ((Objects_) other).first);
        }

        @Override
        public int hashCode() {
            return first.hashCode();
        }
    }

    /** Nothing at all. */
    static class Nothing implements Serializable {
        private static final long serialVersionUID = 2;
        String text = "x";

        private void writeObject(ObjectOutputStream out) throws IOException {
        }

        private void readObject(ObjectInputStream in) throws IOException {
        }
    }

    /** Numbers, instead of a number and a text. */
    static class Numbers implements Serializable {
        private static final long serialVersionUID = 3;
        int number = 1;
        String text = "text";

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.writeLong(number);
            out.writeByte(2);
        }

        private void readObject(ObjectInputStream in) throws IOException {
            number = (int) in.readLong();
            in.readByte();
        }
    }

    /** A class with fields under one that writes none of its own. */
    static class Sub extends Numbers {
        private static final long serialVersionUID = 4;
        long id = 9;
    }

    /** A number, its fields, and something more. */
    static class Before implements Serializable {
        private static final long serialVersionUID = 5;
        int number = 5;
        String text = "text";

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.writeInt(9);
            out.defaultWriteObject();
            out.writeObject("after");
        }

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.readInt();
            in.defaultReadObject();
            in.readObject();
        }
    }

    public static void main(String[] args) throws IOException {
        Object[] all = {new Objects_(), new Nothing(), new Numbers(), new Sub(), new Before()};
        String[] names = {"Objects", "Nothing", "Numbers", "Sub", "Before"};
        for (int i = 0; i < all.length; i++) {
            Path file = Path.of(args[0]).resolve(names[i] + ".theirs");
            try (ObjectOutputStream out = new ObjectOutputStream(Files.newOutputStream(file))) {
                out.writeObject(all[i]);
            }
        }
    }
}
