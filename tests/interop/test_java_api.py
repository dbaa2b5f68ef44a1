"""The table of Java's API has every public method of the jars, once."""

from collections.abc import Mapping

import pytest

from tools.java_api import Line, differences, java_methods, lines, parsed


@pytest.fixture(scope="module")
def methods() -> Mapping[str, set[str]]:
    return java_methods()


def test_every_public_method_has_one_line(methods: Mapping[str, set[str]]) -> None:
    assert sum(map(len, methods.values())) > 500
    assert differences(methods, list(lines())) == []


def test_a_new_method_or_overload_is_found(methods: Mapping[str, set[str]]) -> None:
    manager = "io.pravega.client.admin.StreamManager"
    newer = {**methods, manager: methods[manager] | {"createScope(String, int)", "renameStream(String)"}}
    assert differences(newer, list(lines())) == [
        f"no line: {manager}.createScope(String, int)",
        f"no line: {manager}.renameStream(String)",
    ]


def test_a_removed_class_or_method_is_found(methods: Mapping[str, set[str]]) -> None:
    manager = "io.pravega.client.admin.StreamManager"
    older = {**methods, manager: methods[manager] - {"createScope(String)"}}
    del older["io.pravega.client.tables.Put"]
    assert differences(older, list(lines())) == [
        f"no such method, or two lines: {manager}.createScope(String)",
        "no such class: io.pravega.client.tables.Put",
    ]


def test_classes_and_errors_without_methods_need_a_line() -> None:
    text = """\
public final class a.b.Outer$Inner<T extends a.Base<T>> implements a.C {
  public static <S> a.b.Outer$Inner<S> of(java.util.Map<S, java.util.List<S>>, byte[]) throws a.E;
  public boolean equals(java.lang.Object);
}
class a.b.Hidden {
  public void use();
}
public class a.b.SomeException extends java.lang.RuntimeException {
  public a.b.SomeException(java.lang.String);
}
"""
    found = parsed(text)
    assert found == {"a.b.Outer.Inner": {"of(Map, byte[])"}, "a.b.SomeException": set()}
    of = Line("a.b.Outer.Inner", ("of(Map, byte[])",), "no", "internal")
    assert differences(found, [of]) == ["no line: a.b.SomeException"]
    assert differences(found, [of, Line("a.b.SomeException", (), "yes", "`ConnectorError`")]) == []
