import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;

/** Prints events as Pravega's JavaSerializer writes them, one a line of JSON: case, hex, what Java reads, whether stable. */
public final class Generate {
    private static final List<String> FAILED = new ArrayList<>();

    private static void add(String name, Object value) throws Exception {
        byte[] event = Verify.write(value);
        Object read;
        try (var in = new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(event))) {
            read = in.readObject();
        }
        boolean stable = Arrays.equals(event, Verify.write(read));
        System.out.println("{\"case\":\"" + name + "\",\"stable\":" + stable + ",\"hex\":\"" + HexFormat.of().formatHex(event)
            + "\",\"value\":" + Canonical.of(read) + "}");
    }

    /** Adds a value, and the same once more as Java writes it after reading it: a form that is stable more often. */
    private static void both(String name, Object value) throws Exception {
        add(name, value);
        try (var in = new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(Verify.write(value)))) {
            add(name + "_again", in.readObject());
        }
    }

    @SuppressWarnings({"deprecation", "removal"})
    public static void main(String[] arguments) throws Exception {
        scalars();
        collections();
        maps();
        wrappers();
        times();
        objects();
        boxes();
    }

    private static void scalars() throws Exception {
        for (int i = 0; i < 40; i++) {
            Random random = new Random(i);
            add("biginteger_" + i, new BigInteger(i * 13, random).multiply(BigInteger.valueOf(i % 2 == 0 ? 1 : -1)));
            add("bigdecimal_" + i, new BigDecimal(new BigInteger(i * 5, random), random.nextInt(60) - 20));
            add("double_" + i, Double.longBitsToDouble(random.nextLong()));
            add("float_" + i, random.nextFloat() * 1e6f);
            add("long_" + i, random.nextLong() >> i);
            add("uuid_" + i, new UUID(random.nextLong(), random.nextLong()));
        }
        add("decimal_zero_scale", new BigDecimal("0.000"));
        add("decimal_huge_scale", new BigDecimal(BigInteger.TEN, 1_000_000));
        add("decimal_shares_integer", List.of(BigInteger.ONE.shiftLeft(200), new BigDecimal(BigInteger.ONE.shiftLeft(200))));
        BigInteger shared = BigInteger.ONE.shiftLeft(200);
        add("decimal_really_shares", new ArrayList<>(List.of(shared, new BigDecimal(shared))));
        add("chars", new char[] {'a', '\0', '\ud800', '\uffff'});
        add("floats", new float[] {1.5f, Float.NaN, -0f});
        add("shorts", new short[] {1, -1, Short.MIN_VALUE});
        add("booleans", new boolean[] {true, false, true});
        add("longs3d", new long[][][] {{{1}, {}}, {}, {{2, 3}, null}});
        add("object_matrix", new Object[][] {{1, "a"}, {null, new int[] {1}}});
        add("integers", new Integer[] {1, 2, 300, null, 1});
        add("shapes", new Model.Shape[] {Model.Shape.CIRCLE, null, Model.Shape.SQUARE, Model.Shape.CIRCLE});
        add("sqldate", new java.sql.Date(1700000000123L));
        add("sqltime", new java.sql.Time(1700000000123L));
        java.sql.Timestamp stamp = new java.sql.Timestamp(1700000000000L);
        stamp.setNanos(123456789);
        add("timestamp", stamp);
        add("date_far", new Date(Long.MAX_VALUE));
        add("calendar", new GregorianCalendar(2020, 1, 2));
        add("locale", Locale.CANADA_FRENCH);
        add("bitset", BitSet.valueOf(new long[] {5, 9}));
        add("exception", new IllegalStateException("outer", new java.io.IOException("inner")));
        add("class_object", Object.class);
        add("class_long", long.class);
        add("class_array", String[][].class);
        add("descriptor", java.io.ObjectStreamClass.lookup(Model.Dog.class));
    }

    private static void fill(Collection<Object> target, int kind) {
        for (int i = 0; i < 5; i++) {
            target.add(kind == 0 ? "k" + i * 7 : (Object) (i * 1000));
        }
    }

    private static void collections() throws Exception {
        List<Collection<Object>> all = List.of(new ArrayList<>(), new LinkedList<>(), new Vector<>(), new Stack<>(), new ArrayDeque<>(),
            new PriorityQueue<>(), new CopyOnWriteArrayList<>(), new ConcurrentLinkedQueue<>(), new ConcurrentLinkedDeque<>(),
            new LinkedTransferQueue<>(), new LinkedBlockingQueue<>(), new LinkedBlockingDeque<>(7), new PriorityBlockingQueue<>(),
            new ArrayBlockingQueue<>(9), new HashSet<>(), new LinkedHashSet<>(), new TreeSet<>(), new ConcurrentSkipListSet<>(),
            new CopyOnWriteArraySet<>(), Collections.newSetFromMap(new ConcurrentHashMap<>()), ConcurrentHashMap.newKeySet());
        for (Collection<Object> each : all) {
            String name = each.getClass().getSimpleName();
            both(name + "_empty", each);
            fill(each, 0);
            both(name + "_strings", each);
            each.clear();
            fill(each, 1);
            both(name + "_ints", each);
        }
        for (int size : new int[] {1, 2, 3, 6, 11, 12, 13, 24, 25, 48, 49, 100, 1000}) {
            Set<Object> set = new HashSet<>();
            for (int i = 0; i < size; i++) {
                set.add(i % 3 == 0 ? "s" + i : i % 3 == 1 ? (Object) (i * 7919L) : (Object) (i / 4.0));
            }
            both("hashset_" + size, set);
        }
        Set<Object> loaded = new HashSet<>(10, 0.3f);
        fill(loaded, 0);
        both("hashset_loaded", loaded);
        TreeSet<String> sorted = new TreeSet<>(new Model.Longest());
        Collections.addAll(sorted, "a", "bbb", "cc");
        both("treeset_comparator", sorted);
        PriorityQueue<String> queue = new PriorityQueue<>(new Model.Longest());
        Collections.addAll(queue, "a", "bbb", "cc");
        both("queue_comparator", queue);
        Vector<Integer> vector = new Vector<>(3, 5);
        Collections.addAll(vector, 1, 2, 3, 4);
        both("vector_increment", vector);
        add("list_of_nulls", Arrays.asList(null, "a", null));
        add("list_to_list", java.util.stream.Stream.of("a", null).toList());
        add("list_of_12", List.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
        add("set_of_2", Set.of("x"));
        add("map_of_1", Map.of("x", 1));
        add("enumset", EnumSet.of(Model.Shape.SQUARE, Model.Shape.CIRCLE));
        add("enumset_empty", EnumSet.noneOf(TimeUnit.class));
        List<Object> self = new ArrayList<>();
        self.add(self);
        self.add(Collections.unmodifiableList(self));
        add("list_of_itself", new Object[] {self, self});
        Object[] array = new Object[2];
        array[0] = array;
        array[1] = Arrays.asList(array);
        add("array_of_itself", array);
    }

    private static void maps() throws Exception {
        List<Map<Object, Object>> all = List.of(new HashMap<>(), new LinkedHashMap<>(), new TreeMap<>(), new Hashtable<>(), new Properties(),
            new ConcurrentHashMap<>(), new ConcurrentSkipListMap<>(), new IdentityHashMap<>());
        for (Map<Object, Object> each : all) {
            String name = each.getClass().getSimpleName();
            both(name + "_empty", each);
            for (int i = 0; i < 6; i++) {
                each.put("key" + i * 31, "value" + i);
            }
            both(name + "_strings", each);
            each.clear();
            for (int i = 0; i < 6; i++) {
                each.put(1L << i * 7, i);
            }
            both(name + "_longs", each);
        }
        for (int size : new int[] {1, 5, 11, 12, 13, 23, 24, 25, 47, 48, 49, 100, 500}) {
            Map<Object, Object> map = new HashMap<>();
            for (int i = 0; i < size; i++) {
                Object key = switch (i % 8) {
                    case 0 -> "key-" + i + "-\u00e9\ud83d\ude00";
                    case 1 -> i * 1_000_003;
                    case 2 -> i * -1_000_000_007L;
                    case 3 -> i * 0.37;
                    case 4 -> new BigInteger("-98765432109876543210").multiply(BigInteger.valueOf(i));
                    case 5 -> new UUID(i, ~i * 77L);
                    case 6 -> (char) (i * 100);
                    default -> (short) -i;
                };
                map.put(key, i);
            }
            both("hashmap_" + size, map);
        }
        Map<Object, Object> equal = new LinkedHashMap<>();
        equal.put(1, "int");
        equal.put(1L, "long");
        equal.put(1.0, "double");
        equal.put(1.0f, "float");
        equal.put(true, "boolean");
        equal.put((short) 1, "short");
        equal.put("a", "string");
        equal.put('a', "char");
        equal.put(0.0, "zero");
        equal.put(-0.0, "minus zero");
        equal.put(new BigDecimal("1.0"), "1.0");
        equal.put(new BigDecimal("1.00"), "1.00");
        equal.put(List.of(1), "list");
        equal.put(new int[] {1}, "array");
        equal.put(new int[] {1}, "another array");
        both("equal_in_python", equal);
        Map<Object, Object> loaded = new HashMap<>(100, 0.5f);
        loaded.put("self", loaded);
        loaded.put("a", 1);
        both("hashmap_loaded_of_itself", loaded);
        EnumMap<Model.Shape, Object> shapes = new EnumMap<>(Model.Shape.class);
        both("enummap_empty", shapes);
        shapes.put(Model.Shape.SQUARE, 4);
        shapes.put(Model.Shape.CIRCLE, null);
        both("enummap", shapes);
        Map<Object, Object> byEnum = new HashMap<>();
        byEnum.put(Model.Shape.CIRCLE, 1);
        add("hashmap_by_enum", byEnum);
        TreeMap<String, Integer> sorted = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        sorted.put("b", 1);
        sorted.put("A", 2);
        both("treemap_comparator", sorted);
        both("treemap_reversed", new TreeMap<>(sorted).descendingMap());
        Map<Object, Object> recent = new LinkedHashMap<>(4, 0.75f, true);
        recent.put("x", 1);
        both("linkedhashmap_by_access", recent);
        IdentityHashMap<Object, Object> identity = new IdentityHashMap<>();
        identity.put(new String("same"), 1);
        identity.put(new String("same"), 2);
        identity.put(null, 3);
        add("identity_of_equals", identity);
        Properties defaults = new Properties();
        defaults.setProperty("d", "1");
        Properties properties = new Properties(defaults);
        properties.setProperty("p", "2");
        both("properties_defaults", properties);
        add("entry", new AbstractMap.SimpleEntry<>("k", 1));
    }

    private static void wrappers() throws Exception {
        List<String> list = new ArrayList<>(List.of("a", "b"));
        SortedMap<String, Integer> map = new TreeMap<>(Map.of("a", 1));
        NavigableSet<String> set = new TreeSet<>(Set.of("z"));
        add("unmodifiable_collection", Collections.unmodifiableCollection(list));
        add("unmodifiable_list", Collections.unmodifiableList(list));
        add("unmodifiable_linked", Collections.unmodifiableList(new LinkedList<>(list)));
        add("unmodifiable_set", Collections.unmodifiableSet(new LinkedHashSet<>(list)));
        add("unmodifiable_sorted_set", Collections.unmodifiableSortedSet(set));
        add("unmodifiable_navigable_set", Collections.unmodifiableNavigableSet(set));
        add("unmodifiable_map", Collections.unmodifiableMap(map));
        add("unmodifiable_sorted_map", Collections.unmodifiableSortedMap(map));
        add("unmodifiable_navigable_map", Collections.unmodifiableNavigableMap(new TreeMap<>(map)));
        add("synchronized_collection", Collections.synchronizedCollection(list));
        add("synchronized_list", Collections.synchronizedList(list));
        add("synchronized_set", Collections.synchronizedSet(new TreeSet<>(list)));
        add("synchronized_map", Collections.synchronizedMap(map));
        add("synchronized_sorted_map", Collections.synchronizedSortedMap(map));
        add("checked_list", Collections.checkedList(list, String.class));
        add("checked_set", Collections.checkedSet(set, String.class));
        add("checked_map", Collections.checkedMap(map, String.class, Integer.class));
        add("wrapped_twice", Collections.synchronizedList(Collections.unmodifiableList(list)));
        add("wrapped_shared", new Object[] {list, Collections.unmodifiableList(list), Collections.unmodifiableList(list)});
        add("copies", Collections.nCopies(1_000_000_000, "x"));
        add("copies_none", Collections.nCopies(0, null));
        add("empty_list", Collections.emptyList());
        add("empty_set", Collections.emptySet());
        add("empty_map", Collections.emptyMap());
        add("singleton", Collections.singleton("s"));
        add("singleton_list", Collections.singletonList(null));
        add("singleton_map", Collections.singletonMap("k", 7L));
        add("as_lifo", Collections.asLifoQueue(new ArrayDeque<>(list)));
        add("reverse_order", Collections.reverseOrder());
    }

    private static void times() throws Exception {
        Instant[] instants = {Instant.EPOCH, Instant.MIN, Instant.MAX, Instant.ofEpochSecond(-1, 1), Instant.ofEpochSecond(1700000000, 123456000),
            Instant.ofEpochSecond(1700000000, 123456789), Instant.parse("0001-01-01T00:00:00Z"), Instant.parse("9999-12-31T23:59:59.999999999Z")};
        int i = 0;
        for (Instant each : instants) {
            add("instant_" + i++, each);
        }
        LocalTime[] clocks = {LocalTime.MIN, LocalTime.MAX, LocalTime.NOON, LocalTime.of(1, 2), LocalTime.of(1, 0, 3), LocalTime.of(1, 2, 3, 4000)};
        for (LocalTime each : clocks) {
            add("time_" + i++, each);
            add("datetime_" + i, LocalDate.of(2024, 2, 29).atTime(each));
            add("offset_time_" + i, each.atOffset(ZoneOffset.ofHoursMinutes(5, 30)));
            add("offset_datetime_" + i, LocalDate.of(1969, 12, 31).atTime(each).atOffset(ZoneOffset.ofTotalSeconds(-12345)));
        }
        add("offset_utc", OffsetDateTime.of(2020, 1, 2, 3, 4, 5, 6, ZoneOffset.UTC));
        add("zoned_paris", ZonedDateTime.of(2024, 7, 1, 12, 0, 0, 1, ZoneId.of("Europe/Paris")));
        add("zoned_overlap", ZonedDateTime.ofLocal(LocalDateTime.of(2024, 10, 27, 2, 30), ZoneId.of("Europe/Paris"), ZoneOffset.ofHours(1)));
        add("zoned_offset", ZonedDateTime.of(2024, 7, 1, 12, 0, 0, 0, ZoneOffset.ofHours(-3)));
        add("zoned_utc", ZonedDateTime.of(2024, 7, 1, 12, 0, 0, 0, ZoneId.of("UTC")));
        add("zone", ZoneId.of("America/New_York"));
        add("offset", ZoneOffset.ofTotalSeconds(3601));
        add("date_far_back", LocalDate.of(-5000, 1, 1));
        add("date_max", LocalDate.MAX);
        add("duration_far", Duration.ofSeconds(Long.MIN_VALUE));
        add("duration_minus", Duration.ofNanos(-1));
        add("duration_plus", Duration.ofNanos(86_400_000_001_000L));
        add("period", Period.of(-1, 20, 300));
        add("year", Year.of(2024));
        add("year_month", YearMonth.of(-3, 12));
        add("month_day", MonthDay.of(2, 29));
        add("day_of_week", DayOfWeek.FRIDAY);
        add("japanese", java.time.chrono.JapaneseDate.of(2020, 1, 1));
    }

    private static void objects() throws Exception {
        add("point", new Model.Point(-3, 0.5, "p"));
        add("pairs", new Model.Pair<>(new Model.Pair<>(1, List.of("x")), new Model.Pair<>(null, Map.of("k", new Model.Point(1, 2, null)))));
        Model.Puppy puppy = new Model.Puppy();
        puppy.legs = 4;
        puppy.name = "Rex";
        puppy.good = true;
        puppy.grade = '\u20ac';
        puppy.weight = 2.5f;
        puppy.naps = new short[] {3, -3};
        puppy.toy = Model.Shape.SQUARE;
        puppy.tiny = -7;
        puppy.friend = puppy;
        add("puppy", puppy);
        Model.Node first = new Model.Node("first");
        Model.Node second = new Model.Node("second");
        first.next = second;
        second.next = first;
        first.all.add(first);
        first.all.add(second);
        second.all = first.all;
        add("nodes", first);
        Model.Box<Object> box = new Model.Box<>(new Model.Box<>("inner"));
        box.inner.put("list", new ArrayList<>(List.of(new Model.Box<>(1), new Model.Box<>(new int[] {1, 2}))));
        add("boxes", box);
        for (int size : new int[] {0, 1, 200, 255, 256, 1019, 1020, 1021, 1024, 5000}) {
            byte[] body = new byte[size];
            new Random(size).nextBytes(body);
            add("ledger_" + size, new Model.Ledger(body, new ArrayList<>(List.of("n" + size))));
        }
        add("signed", new Model.SignedLedger(new byte[] {1}, null, "me"));
        add("temperature", new Model.Temperature(21.5, "C"));
        add("temperatures", new ArrayList<>(List.of(new Model.Temperature(1, "K"), new Model.Temperature(2, null))));
        add("proxy", Proxy.newProxyInstance(Generate.class.getClassLoader(), new Class<?>[] {Runnable.class, Comparable.class}, new Model.Echo()));
        Model.MyMap map = new Model.MyMap();
        map.put("a", 1);
        add("my_map", map);
        Model.MyList list = new Model.MyList();
        list.add("x");
        list.add(list);
        add("my_list", list);
        add("money", money());
        add("money_empty", new Model.Money());
        for (int i = 0; i < 30; i++) {
            add("flat_" + i, flat(new Random(i)));
        }
        Model.Sixty sixty = new Model.Sixty();
        for (Field each : Model.Sixty.class.getDeclaredFields()) {
            int n = each.getName().hashCode();
            each.set(sixty, each.getType() == int.class ? (Object) n : each.getType() == long.class ? (Object) (n * 1_000_000_007L) : "s" + n);
        }
        add("sixty", sixty);
        Object nested = "bottom";
        for (int i = 0; i < 300; i++) {
            nested = i % 2 == 0 ? new ArrayList<>(Collections.singletonList(nested)) : new Object[] {nested};
        }
        add("deep", nested);
    }

    private static Model.Money money() {
        Model.Money money = new Model.Money();
        money.cents = 5L;
        money.count = 6;
        money.rate = 0.5;
        money.paid = true;
        money.small = 7;
        money.tiny = 8;
        money.ratio = 0.25f;
        money.grade = 'g';
        money.currency = "EUR";
        money.exact = new BigDecimal("12.340");
        money.when = new Date(123456789);
        money.at = Instant.ofEpochSecond(9, 9);
        money.raw = new byte[] {1, 2};
        money.days = new int[] {3};
        money.tags = new String[] {"x", null};
        money.history = new ArrayList<>(List.of(1L, 2L));
        money.more = new HashMap<>(Map.of("k", new ArrayList<>()));
        return money;
    }

    static Model.Flat flat(Random random) {
        Model.Flat flat = new Model.Flat();
        flat.id = random.nextLong();
        flat.count = random.nextInt();
        flat.value = random.nextGaussian();
        flat.ok = random.nextBoolean();
        flat.grade = (char) random.nextInt(0x10000);
        flat.small = (short) random.nextInt();
        flat.tiny = (byte) random.nextInt();
        flat.ratio = random.nextFloat();
        flat.name = random.nextInt(4) == 0 ? null : "name-" + random.nextInt(1000) + (random.nextInt(4) == 0 ? "\0\ud83d\ude00" : "");
        flat.unit = random.nextInt(4) == 0 ? flat.name : "u" + random.nextInt(9);
        flat.seen = random.nextInt(4) == 0 ? null : random.nextLong();
        flat.level = random.nextInt(4) == 0 ? null : random.nextInt(300);
        flat.limit = random.nextInt(4) == 0 ? null : random.nextDouble();
        return flat;
    }

    /** Boxes and strings that are equal and not the same object, which CPython would share. */
    @SuppressWarnings({"deprecation", "removal"})
    private static void boxes() throws Exception {
        Integer five = new Integer(5);
        add("same_ints", new ArrayList<Object>(Arrays.asList(five, new Integer(5), five, new Integer(5))));
        add("same_strings", new ArrayList<Object>(Arrays.asList("", new String(""), "", "a", new String("a"), "\u00e9", new String("\u00e9"))));
        Boolean yes = new Boolean(true);
        add("same_booleans", new ArrayList<Object>(Arrays.asList(yes, new Boolean(true), yes, false, new Boolean(false))));
        byte[] none = {};
        add("same_bytes", new ArrayList<Object>(Arrays.asList(none, new byte[0], none, new byte[] {7}, new byte[] {7})));
        add("same_doubles", new ArrayList<Object>(Arrays.asList(new Double(1), new Double(1), new Long(1), new Character('a'), new Character('a'))));
        add("type_string", new ArrayList<Object>(Arrays.asList("Ljava/lang/String;", new Model.Point(1, 2, "Ljava/lang/String;"), "Ljava/lang/String;")));
    }
}
