"""``pravega-serde generate`` for files, without servers."""

import pytest
from click.testing import CliRunner

from pravega_connector.cli.root import command_line
from pravega_serde import ClassDescriptor, JavaSerializer

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
