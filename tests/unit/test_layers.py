"""Imports among the project's modules."""

import pytest

from tools.imports import Kind, circles, edges, faults, modules


def found(folder, **sources):
    """Imports of modules of ``pravega_serde`` with these sources."""
    package = folder / "pravega_serde"
    package.mkdir()
    (package / "__init__.py").write_text(sources.pop("face", ""))
    for name, text in sources.items():
        (package / f"{name}.py").write_text(text)
    return list(edges(modules(folder)))


def test_no_module_imports_itself_through_others():
    assert list(faults(list(edges(modules())))) == []


@pytest.mark.parametrize(
    ("kind", "back"),
    [
        (Kind.LOAD, "from pravega_serde import one"),
        (Kind.LOAD, "import pravega_serde.one"),
        (Kind.LOAD, "from . import one"),
        (Kind.LOAD, "try:\n    from .one import x\nexcept ImportError:\n    pass"),
        (Kind.CALL, "def f():\n    from pravega_serde.one import x"),
        (Kind.CALL, "class C:\n    async def f(self):\n        import pravega_serde.one as one"),
        (Kind.TYPES, "if TYPE_CHECKING:\n    from pravega_serde.one import x"),
        (Kind.TYPES, "if typing.TYPE_CHECKING:\n    from pravega_serde.one import x"),
        (Kind.NAME, "value = import_module('pravega_serde.one')"),
        (Kind.NAME, "value = import_module(f'pravega_serde.{name}')"),
        (Kind.NAME, "value = importlib.import_module(f'{__package__}.{name}')"),
        (Kind.NAME, "TABLE = {'format': 'pravega_serde.one:Class'}"),
        (Kind.NAME, "def f():\n    return load('pravega_serde.one.function')"),
    ],
)
def test_a_circle_is_found_by_any_kind_of_import(tmp_path, kind, back):
    there = found(tmp_path, one="from pravega_serde.two import y", two=back)
    assert circles(there) == [["pravega_serde.one", "pravega_serde.two"]]
    assert kind in {edge.kind for edge in there if edge.source == "pravega_serde.two"}
    (text,) = faults(there)
    assert "pravega_serde.one:1 -> pravega_serde.two (load)" in text


def test_a_package_and_a_module_that_takes_names_from_it_are_a_circle(tmp_path):
    face = "else_, dir_, all_ = public_names(__name__, {'one': 'x'})"
    assert circles(found(tmp_path, face=face, one="from pravega_serde import y")) == [
        ["pravega_serde", "pravega_serde.one"]
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from pravega_serde import other",
        '"""See pravega_serde.one."""',
        "text = 'pravega_serde.one is a module'",
        "logger = getLogger('pravega_serde')",
    ],
)
def test_what_is_no_import_of_a_module_is_no_edge(tmp_path, text):
    assert circles(found(tmp_path, one="from pravega_serde.two import y", two=text, other="")) == []


@pytest.mark.parametrize(
    "text",
    [
        "if TYPE_CHECKING:\n    from pravega_connector.wire import StreamName",
        "PACKAGES = ('pravega_serde', 'pravega_connector')",
        "KIT = 'pravega_connector.wire'",
    ],
)
def test_serializers_reach_no_other_package(tmp_path, text):
    other = tmp_path / "pravega_connector"
    other.mkdir()
    for name in ("__init__", "wire"):
        (other / f"{name}.py").write_text("")
    (fault,) = faults(found(tmp_path, one=text))
    assert "pravega_serde.one:" in fault
