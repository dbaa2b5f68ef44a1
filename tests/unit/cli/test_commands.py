"""Messages of the command line without servers: wrong words, wrong values, exit codes, profiles."""

import contextlib
import errno
import importlib
import json
import os
import re
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from pravega_connector import PravegaClient
from pravega_connector.errors import (
    ConfigError,
    ControllerUnavailableError,
    DataLossError,
    SourceError,
    StreamNotFoundError,
)
from pravega_connector.exactly_once.batch_commit import AppState, Finding
from pravega_connector.operations.cli import COMMANDS
from pravega_connector.operations.cli.arguments import DURATION, SIZE
from pravega_connector.operations.cli.exit_codes import ExitCode, exit_code
from pravega_connector.operations.cli.root import command_line
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_serde import DeserializationError


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Only the profile and the server of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "nowhere://")
    monkeypatch.delenv("PRAVEGA_PROFILE", raising=False)
    monkeypatch.delenv("PRAVEGA_SCOPE", raising=False)


def run(*args, **options):
    result = CliRunner().invoke(command_line, args, **options)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["raed"], "did you mean 'read'?"),
        (["stream", "creat"], "No such command 'creat'; did you mean 'create'?"),
        (["read", "s/x", "--folow"], "No such option '--folow'; did you mean '--follow'?"),
        (["read", "s/x", "--from-beginning"], "No such option '--from-beginning'; did you mean '--start'?"),
        (["read", "s/x", "--max-messages", "3"], "did you mean '--limit'?"),
        (["stream", "create", "s/x", "--partitions", "2"], "did you mean '--segments'?"),
        (["write", "s/x", "--key", "a"], "did you mean '--routing-key' or '--key-field'?"),
        (["registry", "groups", "--url", "http://a"], "did you mean '--registry'?"),
        (["--controller", "tcp://a", "stream", "list"], "COMMAND --controller …"),
        (["stream", "--json", "list"], "stream COMMAND --json …"),
        (["stream", "list", "--profile", "a"], " --profile …"),
        (["stream", "list", "--nothing"], "No such option '--nothing'\n"),
        (["read", "s/x", "--follow", "--end", "latest"], "--follow excludes --end"),
        (["read", "s/x", "--limit", "0"], "--limit"),
        (["read", "s/x", "--json", "--bytes", "raw"], "JSON cannot have raw bytes"),
        (["read", "s/x", "--delimiter", "\\x1"], "invalid --delimiter"),
        (["read", "s/x", "--format", "avro", "-o", "avro_shema=x"], "did you mean 'avro_schema'?"),
        (["write", "s/x", "--routing-key", "a", "-K", ":"], "choose one"),
        (["write", "s/x", "-K", ""], "--key-separator is empty"),
        (["write", "s/x", "--routing-key", "\udcff"], "--routing-key is not UTF-8"),
        (["stream", "create", "s/x", "--retain-size", "10XB"], "invalid size '10XB': write, for example, 10GB"),
        (["stream", "create", "s/x", "--retain-time", "week"], "invalid duration 'week': write, for example, 7d"),
        (["stream", "create", "s/x", "--retain-time", "7d", "--retain-size", "1GB"], "exclude each other: pass one"),
        (["stream", "create", "s/x", "--retain-at-most", "1GB"], "--retain-at-most requires --retain-size"),
        (
            ["stream", "create", "s/x", "--retain-time", "7d", "--retain-at-most", "1GB"],
            "--retain-at-most: invalid duration '1GB'",
        ),
        (["stream", "create", "s/x", "--scale-events", "1", "--scale-kbytes", "1"], "exclude each other: pass one"),
        (["stream", "create", "s/x", "--scale-factor", "3"], "--scale-factor requires --scale-events"),
        (["stream", "scale", "s/x"], "pass one of --segments, --split and --merge"),
        (["stream", "scale", "s/x", "--segments", "1", "--split", "0"], "pass one of"),
        (["stream", "truncate", "s/x"], "--at"),
        (["table", "put", "s/x", "key", "value", "--insert", "--if-version", "0:1"], "exclude each other: pass one"),
        (["topic", "list"], "No such command 'topic'; did you mean 'stream'?"),
        (["consume", "s/x"], "did you mean 'read'?"),
        (["stream", "ls"], "did you mean 'list'?"),
        (["group", "resett", "s/x"], "did you mean 'reset'?"),
    ],
)
def test_an_invalid_command_line(args, said):
    code, output, errors = run(*args)
    assert (code, output) == (ExitCode.USAGE, "")
    assert said in errors


def test_every_command_with_a_server_names_a_wrong_address_in_one_line():
    for args in (
        ["scope", "list"],
        ["stream", "describe", "s/x"],
        ["read", "s/x"],
        ["write", "s/x"],
        ["lag", "s/x:0=5"],
        ["cut", "of", "s/x"],
        ["cut", "decided", "s/x"],
        ["watch", "s/x"],
        ["recover", "s/x"],
        ["subscribers", "s/x"],
        ["group", "list", "s"],
        ["group", "lag", "s/x"],
        ["table", "list", "s"],
        ["table", "get", "s/x", "key"],
    ):
        code, output, errors = run(*args, input="")
        assert (code, output, errors.count("\n")) == (ExitCode.FAILED, "", 1), (args, errors)
        assert errors.startswith("[PRAVEGA-CONFIG] the controller URI 'nowhere://' must begin with")


def test_recover_shows_the_whole_id_of_an_application(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    query = "4b04a882-19ef-4fe8-b8c8-a79bf423f21b"
    importlib.import_module("pravega_connector.operations.cli.recover")._show([Finding(AppState(query, last=21))], [])
    assert query in capsys.readouterr().out  # as --accept and --discard take it


def test_a_table_in_a_pipe_has_one_line_for_each_row(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")  # shells and CI systems export it
    code, output, _ = run("options")
    row = next(line for line in output.splitlines() if line.lstrip().startswith("txn_version"))
    assert code == 0
    assert "with other rows" in row  # the end of its text


def test_the_lag_of_two_checkpoints_with_one_name_is_two_series(tmp_path, monkeypatch):
    name = importlib.import_module("pravega_connector.operations.cli.lag")._name
    for query in ("orders", "refunds"):
        (tmp_path / query / "ckpt").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert name("orders/ckpt/") == str(tmp_path / "orders/ckpt") != name("refunds/ckpt")
    assert name("s3a://bucket/orders/ckpt/") == "s3a://bucket/orders/ckpt" != name("s3a://bucket/refunds/ckpt")
    assert name("s/x:0=5") == ""


@pytest.mark.parametrize("command", [["show"], ["convert", "--to", "json"]])
@pytest.mark.parametrize("text", ["latest", "head", "2026-11-21T10:00:00Z", "timestamp:2026-11-21T10:00:00Z"])
def test_a_position_is_not_a_cut(command, text):
    code, output, errors = run("cut", *command, text)
    assert (code, output) == (1, "")
    assert f"'{text}' is a position in a stream, not a stream cut: 'pravega-serde cut of SCOPE/STREAM --at" in errors


def test_positions_are_compared_and_a_ledger_that_is_missing_is_not_created(monkeypatch):
    with InProcessPravega() as pravega, PravegaClient(pravega.uri) as client:
        monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", pravega.uri)
        client.create_stream("s/x", 1)
        client.write("s/x", b"12345")
        between = (0, "before: 13 bytes between them\n", "")
        assert run("cut", "compare", "earliest", "latest", "--stream", "s/x") == between
        assert run("cut", "compare", "s/x:0=0", "tail") == between
        assert run("cut", "compare", "s/x:0=0", "s/x:0=13") == between
        code, _, errors = run("cut", "compare", "earliest", "latest")
        assert (code, "name no stream: pass --stream" in errors) == (2, True)
        for args in (["recover", "s/x"], ["cut", "decided", "s/x"], ["recover", "s/x", "--ledger", "s/none"]):
            code, _, errors = run(*args)
            assert code == ExitCode.NOT_FOUND
            assert "does not exist: no exactly-once batch was written with it, so there is nothing to recover" in errors
            assert "create it" not in errors
        assert run("recover", "s/typo")[2].startswith("[PRAVEGA-STREAM-NOT-FOUND] stream s/typo does not exist")
        view = run("watch", "s/x", "--once", "--interval", "0.1", env={"COLUMNS": "20"})[1]
        assert len(view.splitlines()) == 3  # a title, the headings and a segment


def test_errors_about_a_registry_advise_no_calls_of_python():
    with InProcessRegistry() as registry:
        code, _, errors = run("registry", "schemas", "none", "--registry", registry.uri)
        assert (code, "create it with 'pravega-serde registry create'" in errors) == (ExitCode.NOT_FOUND, True)
    for args in (["schemas", "g"], ["delete", "g", "--yes"], ["policy", "g", "Full", "--if", "AllowAny"]):
        code, _, errors = run("registry", *args, "--registry", "confluent+mock://advice")
        assert (code, "subject 'g'" in errors) in ((ExitCode.NOT_FOUND, True), (1, True))
        assert not re.search(r"\w\(", errors)


def test_sizes_and_durations():
    assert [SIZE.convert(text, None, None) for text in ("7", "1kB", "1.5 MB", "2GiB")] == [7, 1000, 1_500_000, 2 << 30]
    assert [DURATION.convert(text, None, None) for text in ("500ms", "2s", "1.5h", "7d")] == [
        500,
        2000,
        5_400_000,
        7 * 86_400_000,
    ]


def test_a_closed_standard_input():
    command = [sys.executable, "-c", "from pravega_connector.operations.cli import main; main()", "write", "s/x"]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert "standard input is closed" in done.stderr


def test_an_error_has_its_code():
    codes = {
        ConfigError("x"): ExitCode.FAILED,
        DataLossError("x"): ExitCode.DATA_LOSS,
        StreamNotFoundError("x"): ExitCode.NOT_FOUND,
        SourceError("x"): ExitCode.BAD_DATA,
        DeserializationError("x"): ExitCode.BAD_DATA,
        ControllerUnavailableError("x"): ExitCode.UNAVAILABLE,
    }
    assert {error: exit_code(error) for error in codes} == codes


def test_an_interrupt_and_a_closed_pipe_are_quiet(monkeypatch):
    for raised, code in ((KeyboardInterrupt(), 130), (BrokenPipeError(errno.EPIPE, "gone"), 141)):

        def fail(*_: object, error: BaseException = raised, **__: object):
            raise error

        monkeypatch.setattr("pravega_connector.operations.cli.local.detached_server", fail)
        monkeypatch.setattr("pravega_connector.operations.cli.root._end_output", lambda: None)
        assert run("local", "status") == (code, "", "")


def test_a_table_for_a_closed_pipe_ends_as_other_output_does():
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        command = [
            sys.executable,
            "-c",
            "from pravega_connector.operations.cli.root import *; command_line()",
            "options",
        ]
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_command_without_its_extra(monkeypatch):
    real = importlib.import_module

    def without(name: str, package: str | None = None):
        if name.endswith("cli.export"):
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    code, _, errors = run("export", "s/x", "file.parquet", "--to", "parquet")
    assert code == ExitCode.FAILED
    assert errors.startswith("[PRAVEGA-MISSING-EXTRA] pravega-serde export needs the package 'pyspark'; install it")


def test_the_profile_that_is_named_else_the_default_one(monkeypatch, tmp_path):
    monkeypatch.delenv("PRAVEGA_CONTROLLER_URI")
    (tmp_path / "pravega-serde").mkdir()
    file = tmp_path / "pravega-serde" / "config.toml"
    file.write_text('[default]\ncontroller = "one://"\n[other]\ncontroller = "two://"\nregistry = "three://"\n')
    assert "'one://'" in run("scope", "list")[2]
    assert "'two://'" in run("--profile", "other", "scope", "list")[2]
    assert "'two://'" in run("scope", "list", env={"PRAVEGA_PROFILE": "other"})[2]
    other, environment = ("--profile", "other"), {"PRAVEGA_CONTROLLER_URI": "env://", "PRAVEGA_REGISTRY_URI": "env://"}
    assert "'env://'" in run("scope", "list", env=environment)[2]
    assert "'env://'" in run("scope", "list", env=environment | {"PRAVEGA_PROFILE": "other"})[2]
    assert "'two://'" in run(*other, "scope", "list", env=environment)[2], "what is named rules over the environment"
    assert "'three://'" in run(*other, "registry", "groups", env=environment)[2]
    assert "'five://'" in run(*other, "registry", "--registry", "five://", "groups", env=environment)[2]
    assert "'five://'" in run(*other, "registry", "groups", "--registry", "five://", env=environment)[2]
    assert "'four://'" in run("--profile", "other", "scope", "list", "--controller", "four://")[2]
    assert "'three://'" in run("--profile", "other", "registry", "groups")[2]
    assert "'six://'" in run("registry", "groups", env={"PRAVEGA_REGISTRY_URI": "six://"})[2]
    assert "set PRAVEGA_REGISTRY_URI" in run("registry", "groups")[2]
    assert "PRAVEGA_PROFILE" not in os.environ
    code, _, errors = run("--profile", "othr", "scope", "list")
    assert (code, errors.count("\n")) == (ExitCode.FAILED, 1)
    assert "did you mean 'other'?" in errors


def test_the_options_of_spark_as_json():
    told = json.loads(run("options", "--json")[1])
    assert told["Source"]["mode"]["default"] == "FAILFAST"


def test_the_help_of_every_command():
    for name in COMMANDS:
        code, output, _ = run(name, "--help")
        assert code == 0
        assert output.startswith("Usage: ")


def test_bash_completes_commands(monkeypatch):
    words = {"_PRAVEGA_SERDE_COMPLETE": "bash_complete", "COMP_WORDS": "pravega-serde stre", "COMP_CWORD": "1"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(command_line, [], prog_name="pravega-serde", complete_var="_PRAVEGA_SERDE_COMPLETE")
    assert result.output == "plain,stream\n"


def walk(command=command_line, path=()):
    """Yield every command with its path, groups included."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*path, name))


ALL = list(walk())


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "pravega-serde" for path, _ in ALL])
def test_every_help_has_whole_summaries_options_and_examples(path, command):
    result = CliRunner().invoke(command_line, [*path, "--help"], terminal_width=80, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "Example" in result.stdout
    if isinstance(command, click.Group):
        _, _, listed = result.stdout.partition("\nCommands:\n")
        assert "..." not in listed
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, option.name


def example_lines():
    for path, command in ALL:
        for line in (command.epilog or "").splitlines()[2:]:
            yield path, line.strip()


@pytest.mark.parametrize(("path", "line"), list(example_lines()))
def test_the_examples_are_valid_commands(path, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("orders.jsonl", "order.avsc", "refund.json", "event.bin", "orders.cut"):
        (tmp_path / name).write_text("x")
    (words,) = [part for part in line.split(" | ") if part.startswith("pravega-serde ")]
    _, *args = shlex.split(words.partition(" > ")[0].partition(" < ")[0])
    context = command_line.make_context("pravega-serde", args)
    command, named = command_line, []
    with contextlib.ExitStack() as opened:
        while isinstance(command, click.Group):
            name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            named.append(name)
            context = command.make_context(name, rest, parent=context)
            opened.callback(context.close)
    assert tuple(named[: len(path)]) == path or not path


#: Options with another type in another command, whose meaning is the same or whose command tells them apart.
_OF_TWO_TYPES = {
    "--delimiter": "after events, between CSV fields",
    "--format": "of events, of a schema",
    "--output": "a file, a folder of files",
    "--registry": "URI of a registry, and the flag that starts one",
    "--to": "form of a cut, format of a file",
    "--type": "of a schema, of a column",
}


def test_a_flag_has_one_meaning():
    meanings = {}
    for path, command in ALL:
        for option in command.params:
            if isinstance(option, click.Option) and option.name != "help":
                for flag in option.opts:
                    kind = (option.is_flag, option.metavar or option.type.name)
                    meanings.setdefault(flag, {}).setdefault(kind, []).append(" ".join(path))
    assert {flag for flag, kinds in meanings.items() if len(kinds) > 1} <= _OF_TWO_TYPES.keys(), meanings
    assert meanings["--group"] == {(False, "SCOPE/GROUP"): ["watch"]}
    assert meanings["--key"] == {(False, "COLUMN"): ["ingest"]}
    assert meanings["-o"].keys() == {(False, "NAME=VALUE")}


@pytest.mark.parametrize(
    "args",
    [
        ("ingest", "missing.csv", "s/x"),
        ("write", "s/x", "missing.jsonl"),
        ("read", "s/x", "--start", "@missing.cut"),
        ("read", "s/x", "--cut-file", "empty.cut"),
        ("export", "s/x", "out.parquet", "--start", "@missing.cut"),
        ("export", "s/x", "there.parquet"),
        ("scaling", "s/x", "--output", "missing/orders.svg"),
        ("group", "reset", "s/x", "--at", "@missing.cut"),
        ("stream", "truncate", "s/x", "--at", "@missing.cut", "--yes"),
        ("cut", "of", "s/x", "--at", "@missing.cut"),
        ("cut", "show", "@missing.cut"),
        ("write", "s/x", "--format", "avro", "-o", "avro_schema=missing.avsc"),
        ("ingest", "in.csv", "s/x", "--format", "avro", "--avro-schema", "missing.avsc"),
        ("lag", "empty.cut"),
        ("registry", "check", "orders", "missing.avsc"),
        ("registry", "decode", "orders", "--file", "missing.bin"),
    ],
    ids=" ".join,
)
def test_files_are_checked_before_the_servers(args, tmp_path, monkeypatch):
    """No server listens at the address: an error about a file shows that the command did not wait for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://127.0.0.1:1")
    monkeypatch.setenv("PRAVEGA_REGISTRY_URI", "http://127.0.0.1:1")
    (tmp_path / "empty.cut").touch()
    (tmp_path / "there.parquet").touch()
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    code, _, errors = run(*args)
    assert code != 0
    assert "127.0.0.1" not in errors
    file = next(arg for arg in args if "missing" in arg or "there" in arg or "empty" in arg)
    assert file.removeprefix("@").removeprefix("avro_schema=") in errors or "the text is empty" in errors
