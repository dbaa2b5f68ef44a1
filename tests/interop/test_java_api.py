"""The table of Java's API has every public method of the jars, once."""

from tools.java_api import differences, java_methods, lines


def test_every_public_method_has_one_line() -> None:
    methods = java_methods()
    assert sum(map(len, methods.values())) > 500
    assert differences(methods, list(lines())) == []
