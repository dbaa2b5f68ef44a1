import java.awt.Color;
import java.awt.Dimension;
import java.awt.Insets;
import java.awt.Point;
import java.awt.Rectangle;
import java.awt.geom.AffineTransform;
import java.awt.geom.Path2D;
import java.beans.PropertyChangeSupport;
import java.io.File;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.spec.RSAPublicKeySpec;
import java.sql.BatchUpdateException;
import java.sql.SQLException;
import java.text.ChoiceFormat;
import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.text.MessageFormat;
import java.text.SimpleDateFormat;
import java.time.Clock;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Month;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.chrono.HijrahDate;
import java.time.chrono.IsoChronology;
import java.time.chrono.JapaneseDate;
import java.time.chrono.MinguoDate;
import java.time.chrono.ThaiBuddhistDate;
import java.time.temporal.ChronoField;
import java.time.temporal.ValueRange;
import java.time.temporal.WeekFields;
import java.util.AbstractMap;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.Currency;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.GregorianCalendar;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.SimpleTimeZone;
import java.util.Stack;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.Vector;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.regex.Pattern;
import javax.management.ObjectName;
import javax.naming.CompositeName;
import javax.naming.Reference;
import javax.naming.StringRefAddr;
import javax.naming.directory.BasicAttributes;
import javax.naming.ldap.LdapName;
import javax.security.auth.x500.X500Principal;
import javax.swing.DefaultListModel;
import javax.swing.event.EventListenerList;
import javax.swing.text.SimpleAttributeSet;
import javax.swing.tree.DefaultMutableTreeNode;

/** Writes an object of each serializable class of the JDK that events might hold into a folder. */
public final class JdkObjects {
    private static final Instant AT = Instant.parse("2024-02-29T12:34:56.789012345Z");

    private JdkObjects() {
    }

    record Pair(int left, String right, List<Long> more) implements Serializable {
    }

    interface Mapper extends Function<String, Integer>, Serializable {
    }

    record Handler(String said) implements InvocationHandler, Serializable {
        @Override
        public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] arguments) {
            return method.getName().equals("equals") ? (Object) true : said;
        }
    }

    public static void main(String[] args) throws Exception {
        List<Object> all = new ArrayList<>();
        all.addAll(languages());
        all.addAll(collections());
        all.addAll(wrappers());
        all.addAll(concurrent());
        all.addAll(times());
        all.addAll(texts());
        all.addAll(others());
        int number = 0;
        for (Object each : all) {
            String name = String.format("%03d-%s", number++, each.getClass().getName().replaceAll("[^A-Za-z.]", "_"));
            try (ObjectOutputStream out = new ObjectOutputStream(
                    Files.newOutputStream(Path.of(args[0]).resolve(name + ".theirs")))) {
                out.writeObject(each);
            }
        }
    }

    private static List<Object> languages() throws IOException {
        Exception suppressed = new IllegalStateException("in closing");
        Exception failure = new IOException("outer", new ArithmeticException("inner"));
        failure.addSuppressed(suppressed);
        Mapper mapper = String::length;
        Object proxy = Proxy.newProxyInstance(
            JdkObjects.class.getClassLoader(), new Class<?>[] {Comparable.class, Runnable.class}, new Handler("x"));
        return List.of(
            "tea", "\0\u00e9\ud83d\ude00\ud800", "long ".repeat(20_000), 1, 2L, (short) 3, (byte) 4, 'c', true, 0.5f, Double.NaN,
            new BigInteger("-123456789012345678901234567890"), new BigDecimal("1234567890.0987654321"),
            BigInteger.ZERO, MathContext.DECIMAL64, new StringBuilder("builder"), new StringBuffer("buffer"),
            int.class, String[].class, Map.Entry.class, Thread.State.BLOCKED, new Pair(1, "two", List.of(3L)), mapper, proxy,
            failure, new StackTraceElement("a.B", "c", "B.java", 7), new ExecutionException(suppressed),
            new AssertionError("no"), new Object[] {1, null, "a", new Object[] {"b"}}, new int[][] {{1, 2}, {}, null},
            new boolean[] {true}, new char[] {'a', '\uffff'}, new double[] {0.1, -0.0}, new String[0][0], new byte[70_000]);
    }

    private static List<Object> collections() {
        Map<String, Integer> plain = new HashMap<>(Map.of("a", 1, "b", 2, "c", 3));
        List<Object> inside = new ArrayList<>(List.of(1, "x"));
        inside.add(inside);
        Map<Object, Object> identities = new IdentityHashMap<>();
        identities.put("k", 1);
        TreeMap<String, Integer> backwards = new TreeMap<>(Comparator.reverseOrder());
        backwards.putAll(plain);
        Properties properties = new Properties();
        properties.setProperty("user", "ann");
        EnumMap<DayOfWeek, String> days = new EnumMap<>(DayOfWeek.class);
        days.put(DayOfWeek.FRIDAY, "fri");
        Stack<Integer> stack = new Stack<>();
        stack.push(1);
        return List.of(
            new ArrayList<>(Arrays.asList(1, null, "x")), inside, new LinkedList<>(List.of(1, 2)),
            new ArrayDeque<>(List.of(1, 2)), new Vector<>(List.of("v")), stack, plain, new HashMap<>(1000),
            new LinkedHashMap<>(Map.of("k", List.of())), new TreeMap<>(plain), backwards, new Hashtable<>(plain), identities,
            days, new HashSet<>(Set.of(1, 2, 3)), new LinkedHashSet<>(List.of("b", "a")), new TreeSet<>(Set.of("t")),
            new TreeSet<>(String.CASE_INSENSITIVE_ORDER), EnumSet.of(Month.MAY), EnumSet.noneOf(Month.class),
            BitSet.valueOf(new long[] {5, 1L << 63}), new PriorityQueue<>(List.of(3, 1, 2)), properties,
            new AbstractMap.SimpleEntry<>("k", 1), new AbstractMap.SimpleImmutableEntry<>("k", 1));
    }

    private static List<Object> wrappers() {
        List<String> list = new ArrayList<>(List.of("a", "b"));
        Map<String, Integer> map = new TreeMap<>(Map.of("a", 1));
        Set<String> backed = Collections.newSetFromMap(new TreeMap<>());
        backed.add("a");
        return List.of(
            List.of(), List.of(1), List.of(1, 2, 3), Map.of(), Map.of("a", 1), Map.of("a", 1, "b", 2), Set.of("s"),
            Set.of(1, 2, 3), Arrays.asList(1, 2), Collections.emptyList(), Collections.emptyMap(), Collections.emptySet(),
            Collections.singletonList(1), Collections.singletonMap("k", 1), Collections.singleton(1),
            Collections.nCopies(3, "x"), Collections.unmodifiableList(list), Collections.unmodifiableMap(map),
            Collections.unmodifiableSet(new TreeSet<>(list)), Collections.unmodifiableCollection(list),
            Collections.unmodifiableSortedMap(new TreeMap<>(map)), Collections.synchronizedList(list),
            Collections.synchronizedMap(map), Collections.checkedList(list, String.class),
            Collections.checkedMap(map, String.class, Integer.class), Collections.reverseOrder(),
            backed, Collections.asLifoQueue(new ArrayDeque<>(list)));
    }

    private static List<Object> concurrent() {
        List<Integer> numbers = List.of(1, 2, 3);
        LongAdder adder = new LongAdder();
        adder.add(5);
        return List.of(
            new ConcurrentHashMap<>(Map.of("a", 1, "b", 2)), new ConcurrentSkipListMap<>(Map.of("a", 1)),
            new ConcurrentSkipListSet<>(numbers), new ConcurrentLinkedQueue<>(numbers), new ConcurrentLinkedDeque<>(numbers),
            new LinkedBlockingQueue<>(numbers), new LinkedBlockingDeque<>(numbers), new LinkedTransferQueue<>(numbers),
            new ArrayBlockingQueue<>(5, true, numbers), new PriorityBlockingQueue<>(numbers),
            new CopyOnWriteArrayList<>(numbers), new CopyOnWriteArraySet<>(numbers), new AtomicInteger(7),
            new AtomicLongArray(new long[] {1, 2}), new AtomicReference<>("r"), adder, new ReentrantLock(true),
            new ReentrantReadWriteLock(), new StampedLock(), new Semaphore(2), TimeUnit.DAYS);
    }

    private static List<Object> times() {
        ZoneId zone = ZoneId.of("Europe/Berlin");
        return List.of(
            AT, Instant.MAX, LocalDate.of(2024, 2, 29), LocalDate.MIN, LocalTime.of(23, 59, 59, 999_999_999), LocalTime.NOON,
            LocalDateTime.of(2024, 2, 29, 0, 0), ZonedDateTime.ofInstant(AT, zone), OffsetDateTime.ofInstant(AT, zone),
            OffsetTime.of(LocalTime.NOON, ZoneOffset.ofHoursMinutes(-3, -30)), Duration.ofNanos(-1), Duration.ofDays(200_000_000),
            Period.of(1, -2, 3), Year.of(2024), YearMonth.of(2024, 2), MonthDay.of(2, 29), zone, ZoneOffset.UTC,
            DayOfWeek.MONDAY, Month.JUNE, ChronoField.YEAR, IsoChronology.INSTANCE, JapaneseDate.of(2024, 1, 2),
            HijrahDate.of(1445, 1, 2), MinguoDate.of(113, 1, 2), ThaiBuddhistDate.of(2567, 1, 2), ValueRange.of(1, 28, 31),
            WeekFields.ISO, Clock.fixed(AT, zone), Clock.systemUTC(), new Date(1_700_000_000_123L),
            new java.sql.Date(0), new java.sql.Time(1000), java.sql.Timestamp.from(AT), gregorian(),
            TimeZone.getTimeZone("America/New_York"), new SimpleTimeZone(3_600_000, "own"));
    }

    private static GregorianCalendar gregorian() {
        return GregorianCalendar.from(ZonedDateTime.ofInstant(Instant.ofEpochSecond(1_700_000_000), ZoneId.of("UTC")));
    }

    private static List<Object> texts() {
        SimpleDateFormat dates = new SimpleDateFormat("yyyy-MM-dd", Locale.ROOT);
        dates.set2DigitYearStart(new Date(0));
        dates.setCalendar(gregorian());
        return List.of(
            new DecimalFormat("#,##0.00", DecimalFormatSymbols.getInstance(Locale.ROOT)),
            DecimalFormatSymbols.getInstance(Locale.GERMANY), dates, new MessageFormat("{0} of {1,number}", Locale.ROOT),
            new ChoiceFormat("0#none|1#one"), Locale.forLanguageTag("zh-Hant-TW"), Currency.getInstance("EUR"),
            Pattern.compile("(a|b)*c", Pattern.CASE_INSENSITIVE), UUID.fromString("00112233-4455-6677-8899-aabbccddeeff"));
    }

    private static List<Object> others() throws Exception {
        SQLException chain = new SQLException("first", "08001", 5);
        chain.setNextException(new BatchUpdateException(new int[] {1, -2}));
        LogRecord record = new LogRecord(Level.WARNING, "said {0}");
        record.setParameters(new Object[] {1, AT});
        record.setInstant(AT);
        Reference reference = new Reference("a.B");
        reference.add(new StringRefAddr("type", "content"));
        Path2D path = new Path2D.Double();
        path.moveTo(1, 2);
        path.lineTo(3, 4);
        DefaultMutableTreeNode tree = new DefaultMutableTreeNode("root");
        tree.add(new DefaultMutableTreeNode("leaf"));
        DefaultListModel<String> model = new DefaultListModel<>();
        model.addElement("first");
        SimpleAttributeSet attributes = new SimpleAttributeSet();
        attributes.addAttribute("k", "v");
        RSAPublicKeySpec key = new RSAPublicKeySpec(BigInteger.ONE.shiftLeft(1023).add(BigInteger.TEN), BigInteger.valueOf(65537));
        return List.of(
            new File("/tmp/a"), URI.create("https://example.com/a?b#c"), URI.create("https://example.com/a").toURL(),
            InetAddress.getByAddress("four", new byte[] {127, 0, 0, 1}), InetAddress.getByAddress(new byte[16]),
            InetSocketAddress.createUnresolved("example.com", 80), chain, Level.FINE, record, new Random(42),
            new X500Principal("CN=Ann, O=Example"), KeyFactory.getInstance("RSA").generatePublic(key),
            new ObjectName("domain:type=a"), new CompositeName("a/b"), new LdapName("CN=Ann,O=Example"), reference,
            new BasicAttributes("mail", "ann@example.com"), new Color(1, 2, 3, 4), new Point(1, 2), new Rectangle(1, 2, 3, 4),
            new Dimension(5, 6), new Insets(1, 2, 3, 4), AffineTransform.getScaleInstance(2, 3), path,
            new PropertyChangeSupport("bean"), tree, model, new EventListenerList(), attributes);
    }
}
