import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectInputStream;
import java.io.ObjectOutput;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Classes of an application, none of which the golden vectors have. */
final class Model {
    private Model() {
    }

    enum Shape {
        CIRCLE,
        SQUARE {
            @Override
            int corners() {
                return 4;
            }
        };

        int corners() {
            return 0;
        }
    }

    record Point(int x, double y, String label) implements Serializable {
    }

    record Pair<A, B>(A left, B right) implements Serializable {
    }

    static class Animal implements Serializable {
        private static final long serialVersionUID = 1L;
        int legs;
        String name;
        protected long shared = 1;
    }

    static class Dog extends Animal {
        private static final long serialVersionUID = -2L;
        boolean good;
        char grade;
        long shared = 2;
        Animal friend;
    }

    static class Puppy extends Dog {
        float weight;
        short[] naps;
        Shape toy;
        byte tiny;
    }

    static class Node implements Serializable {
        String name;
        Node next;
        List<Node> all = new ArrayList<>();

        Node(String name) {
            this.name = name;
        }
    }

    static class Box<T> implements Serializable {
        T value;
        Map<String, List<Box<T>>> inner = new HashMap<>();

        Box(T value) {
            this.value = value;
        }
    }

    /** Custom writeObject at two levels, block data longer than one block, objects in between. */
    static class Ledger implements Serializable {
        private static final long serialVersionUID = 77L;
        int version = 3;
        transient byte[] body;
        transient List<String> notes;

        Ledger(byte[] body, List<String> notes) {
            this.body = body;
            this.notes = notes;
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.defaultWriteObject();
            out.writeInt(body.length);
            out.write(body);
            out.writeObject(notes);
            out.writeUTF("end");
            out.writeObject(this);
        }

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            body = in.readNBytes(in.readInt());
            @SuppressWarnings("unchecked")
            List<String> read = (List<String>) in.readObject();
            notes = read;
            if (!in.readUTF().equals("end") || in.readObject() != this) {
                throw new IOException("not a ledger");
            }
        }
    }

    static class SignedLedger extends Ledger {
        String signature;

        SignedLedger(byte[] body, List<String> notes, String signature) {
            super(body, notes);
            this.signature = signature;
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.defaultWriteObject();
        }
    }

    public static class Temperature implements Externalizable {
        public double degrees;
        public String unit;

        public Temperature() {
        }

        Temperature(double degrees, String unit) {
            this.degrees = degrees;
            this.unit = unit;
        }

        @Override
        public void writeExternal(ObjectOutput out) throws IOException {
            out.writeDouble(degrees);
            out.writeObject(unit);
        }

        @Override
        public void readExternal(ObjectInput in) throws IOException, ClassNotFoundException {
            degrees = in.readDouble();
            unit = (String) in.readObject();
        }
    }

    static class Echo implements InvocationHandler, Serializable {
        String text = "echo";

        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) {
            return switch (method.getName()) {
                case "hashCode" -> 1;
                case "equals" -> proxy == arguments[0];
                default -> text;
            };
        }
    }

    static class Longest implements Comparator<String>, Serializable {
        @Override
        public int compare(String left, String right) {
            return left.length() != right.length() ? right.length() - left.length() : left.compareTo(right);
        }
    }

    static class MyMap extends HashMap<String, Integer> {
        String owner = "me";
    }

    static class MyList extends ArrayList<Object> {
        int extra = 5;
    }

    static class Money implements Serializable {
        private static final long serialVersionUID = 20240101L;
        Long cents;
        Integer count;
        Double rate;
        Boolean paid;
        Short small;
        Byte tiny;
        Float ratio;
        Character grade;
        String currency;
        BigDecimal exact;
        Date when;
        Instant at;
        byte[] raw;
        int[] days;
        String[] tags;
        List<Long> history;
        Map<String, Object> more;
    }

    /** Flat: primitives, strings and boxes only. */
    static class Flat implements Serializable {
        private static final long serialVersionUID = 5L;
        long id;
        int count;
        double value;
        boolean ok;
        char grade;
        short small;
        byte tiny;
        float ratio;
        String name;
        String unit;
        Long seen;
        Integer level;
        Double limit;
    }

    static class Sixty implements Serializable {
        int f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19;
        long g00, g01, g02, g03, g04, g05, g06, g07, g08, g09, g10, g11, g12, g13, g14, g15, g16, g17, g18, g19;
        String h00, h01, h02, h03, h04, h05, h06, h07, h08, h09, h10, h11, h12, h13, h14, h15, h16, h17, h18, h19;
    }
}
