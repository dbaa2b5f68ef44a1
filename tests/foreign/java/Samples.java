import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.Set;

/** Writes an object into a folder whose class does not say what its fields hold. */
public final class Samples {
    private Samples() {
    }

    enum Color { RED, BLUE }

    /** An object inside. */
    static class Line implements Serializable {
        private static final long serialVersionUID = 1;
        int count;
        Color color;

        Line(int count, Color color) {
            this.count = count;
            this.color = color;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Line && count == ((Line) other).count && color == ((Line) other).color;
        }

        @Override
        public int hashCode() {
            return Objects.hash(count, color);
        }
    }

    /** The object. */
    static class Cart implements Serializable {
        private static final long serialVersionUID = 2;
        long id = 1;
        Color color = Color.RED;
        Line first = new Line(1, Color.BLUE);
        List<Line> lines = new ArrayList<>(List.of(new Line(2, Color.RED), new Line(3, Color.BLUE)));
        Map<String, Color> byName = new HashMap<>(Map.of("k", Color.BLUE));
        Set<Color> seen = new TreeSet<>(Set.of(Color.RED, Color.BLUE));
        LinkedList<Long> numbers = new LinkedList<>(List.of(5L));
        Color[] all = {Color.BLUE};
        Object any = Instant.ofEpochSecond(5);
        Number price = new BigDecimal("2.50");
        Date at = new Date(1000);

        @Override
        public boolean equals(Object other) {
            Cart that = (Cart) other;
            return id == that.id && color == that.color && first.equals(that.first) && lines.equals(that.lines)
                && byName.equals(that.byName) && seen.equals(that.seen) && numbers.equals(that.numbers)
                && all[0] == that.all[0] && any.equals(that.any) && at.equals(that.at)
                && ((BigDecimal) price).compareTo((BigDecimal) that.price) == 0;
        }

        @Override
        public int hashCode() {
            return (int) id;
        }
    }

    public static void main(String[] args) throws IOException {
        try (ObjectOutputStream out = new ObjectOutputStream(
                Files.newOutputStream(Path.of(args[0]).resolve("Cart.theirs")))) {
            out.writeObject(new Cart());
        }
    }
}
