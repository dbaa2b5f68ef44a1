"""``pravega-serde generate`` for files, without servers."""

import pytest
from click.testing import CliRunner

from pravega_connector.operations.cli.root import command_line
from pravega_serde import ClassDescriptor, JavaSerializer
from pravega_serde.registry import serializer

ORDER = ClassDescriptor.of("com.example.Order", 42, {"id": "long", "item": "java.lang.String"})
LINE = ClassDescriptor.of("com.example.Line", 1, {"order": "com.example.Order"})


@pytest.fixture(autouse=True)
def events(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no profiles"))
    monkeypatch.chdir(tmp_path)
    order = ORDER.new(id=1, item="tea")
    for name, value in (("orders", order), ("lines", LINE.new(order=order))):
        (tmp_path / f"{name}.hex").write_text(JavaSerializer().serialize(value).hex() + "\n")


def run(source, *arguments, code=0):
    arguments = ["generate", source, "--from", "sniff", "--bytes", "hex", *arguments]
    result = CliRunner().invoke(command_line, arguments)
    assert result.exit_code == code, result.output
    return result


def test_one_file_is_printed_or_written(tmp_path):
    printed = run("@orders.hex", "--to", "java").stdout
    assert "public class Order implements java.io.Serializable {" in printed
    assert run("@orders.hex", "--to", "java", "--output", "src").stdout == "src/com/example/Order.java\n"
    assert (tmp_path / "src/com/example/Order.java").read_text() == printed
    run("@orders.hex", "--to", "dataclass", "--output", "orders.py")
    assert "class Order:" in (tmp_path / "orders.py").read_text()


def test_several_files_need_a_folder():
    assert "2 files are generated: set --output" in run("@lines.hex", "--to", "java", code=2).output
    assert run("@lines.hex", "--to", "java", "--output", "src").stdout.splitlines() == [
        "src/com/example/Line.java",
        "src/com/example/Order.java",
    ]


def test_check_names_the_file_that_differs(tmp_path):
    options = ("@orders.hex", "--to", "dataclass", "--output", "orders.py")
    run(*options)
    run(*options, "--check")
    (tmp_path / "orders.py").write_text("edited\n")
    failed = run(*options, "--check", code=1)
    assert failed.stderr.splitlines() == [
        "[PRAVEGA-STALE-CODE] orders.py differs from the code that its schema generates; generate it again"
    ]
    assert (tmp_path / "orders.py").read_text() == "edited\n"
    assert "--check requires --output" in run("@orders.hex", "--to", "java", "--check", code=2).output


def test_notes_are_not_part_of_the_code(tmp_path):
    reserved = ClassDescriptor.of("com.example.Reserved", 1, {"from": "int"})
    events = [JavaSerializer().serialize(each.new()).hex() for each in (reserved, ORDER)]
    (tmp_path / "two.hex").write_text("\n".join(events))
    result = run("@two.hex", "--to", "dataclass")
    assert "note: left out com.example.Reserved: its field from cannot be" in result.stderr
    assert "note" not in result.stdout


# ---- schemas ----


AVRO = '{"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}'


def generated(*arguments, code=0):
    result = CliRunner().invoke(command_line, ["generate", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_schema_file_is_checked(tmp_path):
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "order.avsc").write_text(AVRO)
    options = ("schemas/order.avsc", "--from", "file", "--to", "msgspec", "--output", "order.py")
    generated(*options)
    assert (tmp_path / "order.py").read_text().splitlines()[0] == (
        "# To generate it again: pravega-serde generate order.avsc --from file --to msgspec"
    )
    generated(*options, "--check")
    (tmp_path / "schemas" / "order.avsc").write_text(AVRO.replace("long", "string"))
    failed = generated(*options, "--check", code=1)
    assert failed.stderr.splitlines() == [
        "[PRAVEGA-STALE-CODE] order.py differs from the code that its schema generates; generate it again"
    ]


def test_the_latest_schema_of_a_group(tmp_path):
    uri = "mock://generated"
    for schema in (AVRO, AVRO.replace('"long"}', '"long"}, {"name": "item", "type": "string", "default": ""}')):
        serializer(uri, group="my-orders", schema=schema, format="avro", create_group=True, register_schema=True)
    found = generated("my-orders", "--from", "registry", "--registry", uri, "--to", "dataclass").stdout
    assert "    item: str = ''" in found
    other = AVRO.replace("shop.Order", "shop.Refund")
    serializer(uri, group="my-orders", schema=other, format="avro", register_schema=True)
    several = generated("my-orders", "--from", "registry", "--registry", uri, "--to", "proto", code=1)
    assert "has schemas of 2 types; set the type: shop.Order, shop.Refund" in several.stderr
    chosen = ("my-orders", "--from", "registry", "--registry", uri, "--to", "proto", "--type", "shop.Refund")
    assert generated(*chosen, "--output", "made").stdout == "made/my_orders.proto\n"
    assert (tmp_path / "made" / "my_orders.proto").read_text().endswith("message Refund {\n  int64 id = 1;\n}\n")
    assert "PRAVEGA-REGISTRY-NOT-FOUND" in generated("absent", *chosen[1:7], code=4).stderr


def test_options_of_another_source_are_usage_errors(tmp_path):
    (tmp_path / "order.avsc").write_text(AVRO)
    file = ("order.avsc", "--from", "file", "--to", "avsc")
    assert "--limit applies to --from sniff only" in generated(*file, "--limit", "3", code=2).output
    assert "--registry applies to --from registry only" in generated(*file, "--registry", "mock://x", code=2).output
    refused = generated("order.avsc", "--from", "file", "--to", "java", code=1)
    assert refused.stderr.startswith("[PRAVEGA-UNSUPPORTED-TARGET] Java classes are generated for Java objects only")
