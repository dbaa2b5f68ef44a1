"""Code for the classes of Java objects: Python classes that read and write the same events, and hostile names."""

import collections
import dataclasses
import datetime as dt
import json
import os
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec
import pytest

from pravega_serde import (
    JavaObject,
    JavaType,
    OutputFileError,
    SchemaError,
    SerdeError,
    StaleCodeError,
    UnsupportedTargetError,
    generate,
    typed,
)
from pravega_serde.generating import GeneratedCode
from pravega_serde.java import (
    ClassDescriptor,
    Field,
    JavaArray,
    JavaEnum,
    JavaList,
    JavaMap,
    JavaSerializer,
    JavaSet,
    Long,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "java_serializer.jsonl"
SERIALIZER = JavaSerializer()
ENUM = ClassDescriptor("java.lang.Enum", 0, 18)
STATUS = ClassDescriptor("com.example.Status", 0, 18, (), ENUM)
LINE = ClassDescriptor.of("com.example.Order$Line", 5, {"count": "int", "sku": "java.lang.String"})


@pytest.fixture(scope="module")
def golden() -> list[bytes]:
    rows = map(json.loads, VECTORS.read_text().splitlines())
    return [bytes.fromhex(row["hex"]) for row in rows if "hex" in row]


def round_trips(module: ModuleType, events: list[bytes]) -> set[str]:
    """Return the classes whose events are written again with the same bytes. Fail for any other event."""
    kinds = {descriptor.name: kind for kind, descriptor in module.JAVA_CLASSES.items()}
    done = set()
    for event in events:
        value = SERIALIZER.deserialize(event)
        if isinstance(value, JavaObject) and value.class_name in kinds:
            kind = kinds[value.class_name]
            serializer = typed(SERIALIZER, kind, java_classes=module.JAVA_CLASSES)
            read = serializer.deserialize(event)
            assert type(read) is kind
            assert serializer.serialize(read) == event, read
            done.add(value.class_name.removeprefix("com.example.gold."))
    return done


@pytest.mark.parametrize("style", ["dataclass", "msgspec"])
def test_golden_objects_are_written_again_byte_for_byte(style, golden, load):
    code = generate(golden, to=style)
    done = {"AllTypes", "Base", "Holder", "Proxied$P", "PutFields", "SensorEvent", "SubOfNonSer"}
    assert round_trips(load(code), golden) >= done - {"Base"}
    left_out = {note.split(":")[0] for note in code.notes}
    names = ("Ext", "Custom", "CustomNoDefault", "Derived", "Derived2")
    assert left_out == {f"left out com.example.gold.{name}" for name in names}


def test_code_of_the_same_events_is_the_same(golden):
    for target in ("dataclass", "java", "msgspec"):
        assert generate(golden, to=target) == generate(golden[::-1], to=target)


def collections_of_everything() -> JavaObject:
    line = LINE.new(count=1, sku="a")
    values: dict[str, tuple[str, Any]] = {
        "array": ("com.example.Order$Line[]", JavaArray([line], ClassDescriptor("[Lcom.example.Order$Line;", 1))),
        "deque": ("java.util.Deque", collections.deque([1, 2])),
        "longs": ("java.util.List", [Long(1), Long(2)]),
        "linked": ("java.util.List", JavaList(["a", None], "java.util.LinkedList")),
        "counts": ("java.util.Map", JavaMap({"a": Long(1)}, "java.util.TreeMap")),
        "dates": ("java.util.List", [dt.datetime(2026, 5, 1, tzinfo=dt.UTC)]),
        "enums": ("java.util.Map", JavaMap({JavaEnum(STATUS, "PAID"): "x"}, "java.util.EnumMap")),
        "lines": ("java.util.List", [line, LINE.new(count=2, sku="b")]),
        "matrix": ("int[][]", JavaArray([], ClassDescriptor("[[I", 1727100010502261052))),
        "nested": ("java.util.Map", {"a": [{"b": Long(3)}]}),
        "number": ("java.lang.Object", Long(7)),
        "price": ("java.lang.Number", Decimal("2.50")),
        "status": ("com.example.Status", JavaEnum(STATUS, "NEW")),
        "unknown": ("com.example.Missing", None),
        "unique": ("java.util.Set", JavaSet([Long(5)], "java.util.TreeSet")),
    }
    order = ClassDescriptor.of("com.example.Order", -3, {name: kind for name, (kind, _) in values.items()})
    return order.new(**{name: value for name, (_, value) in values.items()})


def test_a_constant_that_no_enum_can_have_leaves_its_class_out():
    hidden = ClassDescriptor("com.example.Hidden", 0, 18, (), ENUM)
    holder = ClassDescriptor.of("com.example.Holder", 1, {"of": "com.example.Hidden"})
    events = [SERIALIZER.serialize(holder.new(of=JavaEnum(hidden, "_x_"))), SERIALIZER.serialize(LINE.new(count=1))]
    notes = generate(events, to="dataclass").notes
    assert "left out com.example.Hidden: its constant '_x_' cannot be in an Enum of Python" in notes


@pytest.mark.parametrize("style", ["dataclass", "msgspec"])
def test_values_in_collections_keep_their_java_class(style, load):
    event = SERIALIZER.serialize(collections_of_everything())
    module = load(generate([event], to=style))
    kind = module.Order
    serializer = typed(SERIALIZER, kind, java_classes=module.JAVA_CLASSES)
    read = serializer.deserialize(event)
    assert read.lines == [module.Line(1, "a"), module.Line(2, "b")]
    assert read.enums == {module.Status.PAID: "x"}
    written, before = SERIALIZER.deserialize(serializer.serialize(read)), SERIALIZER.deserialize(event)
    for name in before:
        if name not in ("array", "lines"):
            assert written[name] == before[name], name
            assert type(written[name]) is type(before[name]), name
    assert type(written["longs"][0]) is type(written["nested"]["a"][0]["b"]) is Long
    assert written["counts"].java_class == "java.util.TreeMap"
    assert written["enums"].java_class == "java.util.EnumMap"
    assert written["array"][0]["sku"] == "a"


def test_generated_code_passes_mypy(golden, tmp_path):
    events = [*golden, SERIALIZER.serialize(collections_of_everything())]
    files = [generate(events, to=style).write(tmp_path / f"{style}_classes.py") for style in ("dataclass", "msgspec")]
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-pravega_serde.*]\nfollow_imports = skip\n")
    # A process, because mypy raises its own recursion limit.
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(tmp_path / "cache")]
    command += [str(path) for paths in files for path in paths]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_of_java_that_python_reserves_are_renamed(load):
    """Words of Python are renamed in Structs. A dataclass cannot rename, and its class is left out."""
    odd = ClassDescriptor.of(
        "com.example.Any", 1, {"from": "int", "__x": "int", "str": "java.lang.String", "list": "java.util.List"}
    )
    constant = ClassDescriptor("com.example.None", 0, 18, (), ENUM)
    holder = ClassDescriptor.of("com.example.Holder", 1, {"of": "com.example.None"})
    events = [SERIALIZER.serialize(odd.new(**{"from": 1, "__x": 2, "str": "a", "list": [Long(1)]}))]
    events += [SERIALIZER.serialize(holder.new(of=JavaEnum(constant, name))) for name in ("title", "None")]
    assert round_trips(load(generate(events, to="msgspec")), events) == {"com.example.Any", "com.example.Holder"}
    code = generate(events, to="dataclass")
    assert round_trips(load(code), events) == {"com.example.Holder"}
    assert code.notes == (
        "left out com.example.Any: its field __x cannot be an attribute in Python; msgspec's classes can rename it",
    )


def test_letters_beyond_16_bits_stay_one_letter(load):
    letter = "\U00020000"
    event = SERIALIZER.serialize(ClassDescriptor.of(f"com.example.{letter}", 1, {letter: "int"}).new())
    assert round_trips(load(generate([event], to="dataclass")), [event]) == {f"com.example.{letter}"}
    ((path, text),) = generate([event], to="java").files.items()
    assert path == f"com/example/{letter}.java"
    assert "public class \\ud840\\udc00 implements" in text


def test_a_hidden_field_needs_a_struct(load):
    base = ClassDescriptor.of("Base", 1, {"shared": "long"})
    derived = ClassDescriptor.of("Derived", 1, {"shared": "long"}, base)
    value = derived.new(shared=2)
    value["Base.shared"] = 1
    events = [SERIALIZER.serialize(value)]
    assert round_trips(load(generate(events, to="msgspec")), events) == {"Derived"}
    assert "left out Derived" in generate(events, to="dataclass").notes[0]


HOSTILE = [
    "x; import os",
    "x\nimport os",
    'x"""\nimport os\n"""',
    "x */ class Evil {} /*",
    "x{}",
    "\\u007b",
    "x\0",
    "x\u202ey",
    "a b",
    "",
    "1x",
    "class",
    "x-y",
    "a/b",
    "..",
    "x')",
]


def hostile(name: str) -> list[JavaObject]:
    """Return objects with the name in each place that code can have."""
    text = "Ljava/lang/String;"
    enum = ClassDescriptor("com.example.Color", 0, 18, (), ENUM)
    holder = ClassDescriptor.of("com.example.Holder", 1, {"value": "java.lang.Object"})
    return [
        ClassDescriptor("com.example.A", 1, 2, (Field(name, text),)).new(),
        ClassDescriptor("com.example.A", 1, 2, (Field("a", f"L{name};"),)).new(),
        ClassDescriptor("com.example.A", 1, 2, (Field("a", f"Ljava/lang/{name};"),)).new(),
        ClassDescriptor("com.example.A", 1, 2, (Field("a", f"[Lcom/example/{name};"),)).new(),
        ClassDescriptor(f"com.example.{name}", 1, 2, (Field("a", "I"),)).new(),
        ClassDescriptor(f"{name}.example.A", 1, 2, (Field("a", "I"),)).new(),
        ClassDescriptor("com.example.A", 1, 2, (), ClassDescriptor(f"java.util.{name}", 1, 2)).new(),
        holder.new(value=JavaEnum(enum, name)),
        holder.new(value=[ClassDescriptor(f"java.lang.{name}", 1, 2).new()]),
        holder.new(value=JavaEnum(ClassDescriptor(f"com.example.{name}", 0, 18, (), ENUM), "RED")),
    ]


@pytest.mark.parametrize("target", ["java", "dataclass", "msgspec"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_never_becomes_code(name, target):
    for value in hostile(name):
        event = SERIALIZER.serialize(value)
        try:
            code = generate([event], to=target)
        except SchemaError:
            continue
        # The rest is code without the name: an object of the JDK in a list has no name in the source.
        assert all("Evil" not in text and "import os" not in text for text in code.files.values())
        assert value.class_name == "com.example.Holder" or name == "a/b"


def test_two_versions_of_a_class_are_an_error():
    events = [SERIALIZER.serialize(ClassDescriptor.of("com.example.A", uid, {}).new()) for uid in (1, 2)]
    with pytest.raises(SchemaError, match=r"two versions of com\.example\.A"):
        generate(events, to="java")


def test_events_without_objects_are_an_error():
    with pytest.raises(UnsupportedTargetError, match="Java classes are generated for Java objects only"):
        generate([b'{"a": %d}' % n for n in range(30)], to="java")
    with pytest.raises(SchemaError, match="no objects of an application's classes"):
        generate([SERIALIZER.serialize([1, 2])], to="dataclass")
    with pytest.raises(SerdeError, match="unknown target 'dataclas'; did you mean 'dataclass'"):
        generate([], to="dataclas")  # type: ignore[arg-type]


def test_files_are_written_and_compared(tmp_path):
    code = GeneratedCode({"com/example/A.java": "a\n", "com/example/B.java": "b\n"})
    assert code.write(tmp_path) == [tmp_path / "com/example/A.java", tmp_path / "com/example/B.java"]
    code.check(tmp_path)
    (tmp_path / "com/example/B.java").write_text("c\n")
    with pytest.raises(StaleCodeError, match=r"B\.java differs"):
        code.check(tmp_path)
    (tmp_path / "com/example/B.java").unlink()
    with pytest.raises(StaleCodeError, match=r"B\.java cannot be read \(No such file"):
        code.check(tmp_path)
    with pytest.raises(OutputFileError, match="cannot write"):
        code.write(tmp_path / "com/example/A.java")
    os.mkfifo(tmp_path / "com/example/B.java")
    with pytest.raises(StaleCodeError, match=r"B\.java is not a regular file"):
        code.check(tmp_path)


def test_links_and_permissions_of_files_stay(tmp_path):
    made, link, pipe = (tmp_path / name for name in ("real.py", "link.py", "pipe.py"))
    made.write_text("before")
    made.chmod(0o600)
    link.symlink_to(made)
    os.mkfifo(pipe)
    code = GeneratedCode({"a.py": "a\n"})
    code.write(link)
    assert link.is_symlink()
    assert made.read_text() == "a\n"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    with pytest.raises(OutputFileError, match=r"pipe\.py is not a file, and is not replaced by one"):
        code.write(pipe)
    assert pipe.is_fifo()


@dataclasses.dataclass
class Boxes:
    counts: list[Annotated[int, JavaType("java.lang.Long")]]
    words: Annotated[list[str], JavaType("java.util.LinkedList")] | None = None
    numbers: Annotated[list[int], JavaType("java.lang.Long[]")] | None = None


BOXES = ClassDescriptor.of(
    "com.example.Boxes", 1, {"counts": "java.util.List", "words": "java.util.List", "numbers": "java.lang.Object"}
)


def test_a_java_type_selects_the_class_of_a_value():
    serializer = typed(JavaSerializer(BOXES), Boxes)
    event = serializer.serialize(Boxes([1, 2], ["a"], [3]))
    value = SERIALIZER.deserialize(event)
    assert [type(each) for each in value["counts"]] == [Long, Long]
    assert value["words"].java_class == "java.util.LinkedList"
    assert type(value["numbers"][0]) is Long
    assert serializer.deserialize(event) == Boxes([1, 2], ["a"], [3])


def test_a_java_type_in_another_type_is_an_error():
    kind = msgspec.defstruct("Tuples", [("counts", tuple[Annotated[int, JavaType("java.lang.Long")], ...])])
    with pytest.raises(SchemaError, match="a JavaType can be in a list, a set, a dict and an optional value"):
        typed(JavaSerializer(BOXES), kind)
