"""Public names and where to import them, names known from elsewhere, and the two names of connector."""

import importlib
import importlib.util
import inspect
import json
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import connector
import pravega_connector
import pravega_serde
import pyspark_pravega
from pravega_connector.errors import ConfigError
from pravega_serde.foreign_names import ELSEWHERE
from tests.support.first_guesses import IMPORTS

ROOT = Path(__file__).parents[2]
SERDE_PACKAGES = (
    "adapters", "avro", "cbor", "envelopes", "java", "json", "protobuf", "registry", "routing", "sniffing"
)  # fmt: skip


def python(*words: str, folder: Path = ROOT, given: str = "") -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=300, input=given
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def facades() -> list[str]:
    return [each.name for each in pkgutil.iter_modules(connector.__path__)]


def test_each_module_of_connector_has_the_names_of_the_real_one():
    assert "client" in facades()
    for name in facades():
        short = importlib.import_module(f"connector.{name}")
        real = getattr(pravega_connector, name)
        for public in real.__all__:
            assert getattr(short, public) is getattr(real, public)
        assert not hasattr(short, "nothing_like_it")


@pytest.mark.parametrize("first", ["connector", "pravega_connector"])
def test_the_order_of_the_two_imports_does_not_matter(first):
    second = {"connector": "pravega_connector", "pravega_connector": "connector"}[first]
    code = (
        f"import {first}.client, {second}.client\n"
        f"assert {first}.client.PravegaClient is {second}.client.PravegaClient\n"
        "import pyspark_pravega, pravega_connector.spark.data_source\n"
        "assert pyspark_pravega.DefaultSource is pravega_connector.spark.data_source.PravegaDataSource"
    )
    python("-c", code)


def test_a_class_is_pickled_by_the_name_that_nobody_else_has():
    data = pickle.dumps(ConfigError)
    assert b"pravega_connector.errors" in data
    assert pickle.loads(data) is ConfigError


def test_a_module_that_does_not_exist_is_reported_by_its_name():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'connector\.absent'"):
        importlib.import_module("connector.absent")


def test_a_users_own_connector_hides_nothing_that_spark_needs(tmp_path):
    (tmp_path / "connector.py").write_text("mine = 1\n")
    code = (
        "import pyspark_pravega, pyspark_pravega.functions, connector\n"
        "from pyspark_pravega import PravegaDataSource, from_pravega, to_pravega\n"
        "from pravega_connector import PravegaClient, StreamNotFoundError\n"
        "assert connector.mine == 1\n"
        "try: from connector import PravegaClient\n"
        "except ImportError as error: assert connector.__file__ in str(error)\n"
        "import pickle\n"
        "source = pickle.loads(pickle.dumps(pyspark_pravega.DefaultSource))\n"
        "print(source.name(), source.__module__)"
    )
    assert python("-c", code, folder=tmp_path) == "pravega pravega_connector.spark.data_source\n"


# ---- what people type first ----

# Each statement in its own process, which has what others have written, and nothing of ours.
STATEMENTS = """
import json, os, sys
import google.protobuf.message_factory, grpc, httpx2, msgspec, numpy.typing, pyarrow.compute, pyspark.sql.functions
assert not [name for name in sys.modules if name.startswith(("connector", "pravega", "pyspark_"))]
for statement in json.load(sys.stdin):
    reader, writer = os.pipe()
    if os.fork() == 0:
        kind = text = ""
        try:
            exec(statement, {})
        except Exception as error:
            kind, text = ["AttributeError", "ImportError"][isinstance(error, ImportError)], str(error)
        os.write(writer, json.dumps([kind, text]).encode())
        os._exit(0)
    os.close(writer)
    print(os.fdopen(reader).read())
    os.wait()
"""


def test_first_imports_work_or_raise_the_right_name():
    expected = {statement: said for table in IMPORTS.values() for statement, said in table.items()}
    # The same names with from: the error has the same hint.
    expected |= {
        f"from {found[1]} import {found[2]}": said
        for statement, said in expected.items()
        if (found := re.fullmatch(r"import (\w+); \1\.(\w+)", statement)) is not None
    }
    lines = python("-c", STATEMENTS, given=json.dumps(list(expected))).splitlines()
    wrong = []
    for (statement, said), line in zip(expected.items(), lines, strict=True):
        kind, text = json.loads(line)
        right = (
            text == ""
            if said is None
            else kind == ("ImportError" if statement.startswith("from ") else "AttributeError")
            and said in text
            and "\n" not in text
        )
        if not right:
            wrong.append((statement, kind, text))
    assert wrong == []
    assert sum(said is None for said in expected.values()) > 40


@pytest.mark.parametrize(
    ("package", "name", "said"),
    [
        ("pravega_serde", "AvroSerialiser", "did you mean AvroSerializer?"),
        ("pravega_connector", "AvroSerializer", "write from pravega_serde import AvroSerializer"),
        ("pravega_serde", "StreamCut", "write from pravega_connector import StreamCut"),
        ("pyspark_pravega", "StreamCutt", "did you mean StreamCut? Write from pravega_connector import"),
        ("pravega_connector", "clients", "pravega_connector has no clients: did you mean client?"),
        ("pravega_serde", "Wrong", "pravega_serde has no Wrong: unknown name; dir(pravega_serde) lists the names"),
        ("pravega_serde", "SchemaRegistrySerializer", "did you mean RegistrySerializer?"),
        ("pravega_serde.registry", "AvroDeserializer", "use pravega_serde.registry.deserializer"),
        ("pravega_serde.avro", "JsonSerializer", "write from pravega_serde import JsonSerializer"),
        ("pravega_serde.java", "JavaObjekt", "did you mean JavaObject?"),
        ("pravega_connector.client", "PravegaConfig", "write from pravega_connector import PravegaConfig"),
        ("pravega_connector.client", "Producer", "PravegaClient.writer(stream, serializer)"),
        ("pravega_connector.errors", "StreamNotFoundErorr", "did you mean StreamNotFoundError?"),
    ],
)
def test_an_attribute_s_error_names_the_right_one(package, name, said):
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(package), name)
    assert said in str(caught.value)
    with pytest.raises(ImportError, match=f"^cannot import name {name!r} from {package!r}") as refused:
        exec(f"from {package} import {name}", {})
    assert not isinstance(refused.value, ModuleNotFoundError)
    assert said in str(refused.value)
    many = "".join(f"a{number} = {number}\n" for number in range(300))  # operands of more than a byte
    with pytest.raises(ImportError, match=f"^cannot import name {name!r} from {package!r}"):
        exec(f"{many}from {package} import {name}", {})


@pytest.mark.parametrize("package", ["client", "errors", "ingest", "local"])
def test_the_short_package_has_the_same_hints(package):
    with pytest.raises(ImportError, match=r"has no AvroSerializer: write from pravega_serde import AvroSerializer"):
        exec(f"from connector.{package} import AvroSerializer", {})
    assert not hasattr(importlib.import_module(f"connector.{package}"), "AvroSerializer")


@pytest.mark.parametrize(
    "name",
    ["pravega_connector.client", "pravega_connector.errors", *(f"pravega_serde.{each}" for each in SERDE_PACKAGES)],
)
def test_public_modules_lack_a_name_as_any_module_does(name):
    module = importlib.import_module(name)
    for absent in ("Wrong", "Client", "_private", "__wrapped__"):
        assert not hasattr(module, absent)
        assert getattr(module, absent, 5) == 5
    assert importlib.util.find_spec(name) is module.__spec__
    with pytest.raises(ImportError, match=rf"^cannot import name 'Wrong' from '{name}': {name} has no Wrong: "):
        exec(f"from {name} import Wrong", {})


def test_a_module_of_an_unfinished_import_is_found(tmp_path):
    """``from package import module`` works while the module is being imported, as in any package."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(
        "from pravega_serde.public_names import unknown_names\n__all__ = []\n__getattr__ = unknown_names(__name__)\n"
    )
    (tmp_path / "shop" / "orders.py").write_text("from shop import orders as itself\nname = itself.__name__\n")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    code = "import shop.orders; print(shop.orders.name)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "shop.orders\n"


@pytest.mark.parametrize("package", [pravega_connector, pravega_serde, pyspark_pravega])
def test_a_name_that_is_known_elsewhere_is_absent_to_programs(package):
    assert not hasattr(package, "Client")
    with pytest.raises(ImportError, match=r"^cannot import name 'Client' from .*PravegaClient\(controller\) creates"):
        exec(f"from {package.__name__} import Client", {})
    assert getattr(package, "Client", None) is None
    with pytest.raises(AttributeError, match=r"has no Client: PravegaClient\(controller\) creates writers"):
        _ = package.Client
    with pytest.raises(AttributeError, match=r"^module '\w+' has no attribute '_private'$"):
        _ = package._private
    assert dict(inspect.getmembers(package)).keys() >= set(package.__all__)
    assert importlib.util.find_spec(f"{package.__name__}.nothing_like_it") is None


def test_both_names_have_the_same_objects():
    for name in connector.__all__:
        assert getattr(connector, name) is getattr(pravega_connector, name)
    client = connector.PravegaClient
    assert pickle.loads(pickle.dumps(client)) is client
    assert client.__module__ == "pravega_connector.client.pravega_client"


def test_without_spark_the_names_for_it_say_what_to_install():
    code = (
        "import pravega_connector, sys\n"
        "sys.modules['pyspark'] = None\n"
        "try: pravega_connector.PravegaDataSource\n"
        "except ModuleNotFoundError as error: assert error.name == 'pyspark'\n"
        "from pravega_connector import PravegaClient\n"
        "try: from pravega_connector import PravegaDataSource\n"
        "except ImportError as error: print(error)"
    )
    install = "install it with: pip install 'pravega-serde[spark]'"
    assert python("-c", code) == f"pravega_connector has no PravegaDataSource: it requires Spark; {install}\n"


def test_the_table_of_names_is_true():
    names = [name for table in ELSEWHERE.values() for there in table for name in there.split()]
    assert len(names) > 80
    for package in (pravega_connector, pravega_serde, pyspark_pravega):
        assert [name for name in names if hasattr(package, name)] == [], "it is there: this line is never shown"
    for here in {here for table in ELSEWHERE.values() for here in table.values()}:
        for reference, arguments in re.findall(r"`([\w.]+)(?:\(([\w, ]*)\))?`", here):
            found = resolve(reference)
            if arguments:
                own_self = [None] if next(iter(inspect.signature(found).parameters)) == "self" else []
                inspect.signature(found).bind_partial(*own_self, *arguments.split(","))
        assert here.count("`") == 2 * len(re.findall(r"`[\w.]+(?:\([\w, ]*\))?`", here))


@pytest.mark.parametrize("name", ["configure", "register_functions", "register_streams"])
def test_a_name_for_spark_names_its_package(name):
    code = f"try: from pravega_connector import {name}\nexcept ImportError as error: print(error)"
    assert python("-c", code).endswith(f": write from pyspark_pravega import {name}\n")
    assert name in pyspark_pravega.__all__


def resolve(reference: str) -> Any:
    first, *rest = reference.removeprefix("pravega_serde.").split(".")
    found = getattr(pravega_connector, first, None) or getattr(pravega_serde, first)
    for name in rest:
        found = getattr(found, name)
    return found
