"""Encrypted values of Python in Java with only the JDK, and the reverse. Java's class is the one on the page."""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from pravega_connector.local.jvm import find_java
from pravega_serde import DataKeys, DecryptionError, Encrypted, JsonSerializer, LocalKeys
from tests.interop._javac import compile_java

SOURCES: Final = Path(__file__).parent / "java_encryption"
PAGE: Final = Path(__file__).parents[2] / "docs/serialization/encrypt-fields.md"
VECTORS: Final = Path(__file__).parents[1] / "vectors/encrypted_values.jsonl"
LOCAL_KEY: Final = bytes(range(32))
KEYS: Final = DataKeys.create(LocalKeys({"main": LOCAL_KEY}), "main").rotated()
STREAM: Final = "shop/orders"
SECONDS: Final = 60

Java = Callable[[list[list[str]]], list[str]]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    """Answer requests of the peer."""
    classes, runtime = tmp_path_factory.mktemp("classes"), find_java()
    compile_java(runtime, SOURCES.glob("*.java"), classes)

    def ask(requests: list[list[str]]) -> list[str]:
        done = subprocess.run(
            [str(runtime.path), "-cp", str(classes), "EncryptionPeer"],
            input="".join(" ".join(each) + "\n" for each in requests),
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
        )
        return done.stdout.split()

    return ask


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def request(do: str, value: bytes, *, number: int = 2, stream: str = STREAM, field: str = "card.number") -> list[str]:
    entry = {each["id"]: each["wrapped"] for each in json.loads(KEYS.text)["keys"]}[number]
    return [do, b64(LOCAL_KEY), entry, str(number), stream, field, b64(value)]


def values() -> list[bytes]:
    source = random.Random(5)
    return [source.randbytes(size) for size in [*range(1, 70), 255, 256, 1000, 65_537]]


KIND: Final = pa.struct([("card", pa.struct([("number", pa.binary())]))])


@pytest.mark.parametrize("deterministic", [True, False])
def test_java_reads_what_python_writes(java: Java, deterministic: bool) -> None:
    plain = JsonSerializer(arrow_type=KIND)
    encrypted = Encrypted(plain, ["card.number"], KEYS, stream=STREAM, deterministic=deterministic)
    column = pa.array([{"card": {"number": each}} for each in values()], KIND)
    by_column = plain.decode_column(encrypted.encode_column(column)).to_pylist()
    by_row = [base64.b64decode(json.loads(encrypted.serialize(each))["card"]["number"]) for each in column.to_pylist()]
    for sealed in ([each["card"]["number"] for each in by_column], by_row):
        assert java([request("open", each) for each in sealed]) == [b64(each) for each in values()]


def test_python_reads_what_java_writes(java: Java) -> None:
    plain = JsonSerializer(arrow_type=KIND)
    encrypted = Encrypted(plain, ["card.number"], KEYS, stream=STREAM)
    sealed = [base64.b64decode(each) for each in java([request("seal", each) for each in values()])]
    events = plain.encode_column(pa.array([{"card": {"number": each}} for each in sealed], KIND))
    assert events.equals(encrypted.encode_column(pa.array([{"card": {"number": each}} for each in values()], KIND)))
    assert [each["card"]["number"] for each in encrypted.decode_column(events).to_pylist()] == values()
    assert [encrypted.deserialize(each)["card"]["number"] for each in events.to_pylist()] == list(map(b64, values()))


def test_java_refuses_what_python_refuses(java: Java) -> None:
    (sealed,) = java([request("seal", b"4000 1234")])
    value = base64.b64decode(sealed)
    changed = value[:-1] + bytes([value[-1] ^ 1])
    requests = [
        request("open", value, number=1),
        request("open", value, stream="shop/returns"),
        request("open", value, field="card.code"),
        request("open", changed),
        request("open", value[:9]),
        [*request("open", value)[:1], b64(bytes(32)), *request("open", value)[2:]],
    ]
    assert java(requests) == ["error"] * len(requests)
    encrypted = Encrypted(JsonSerializer(arrow_type=KIND), ["card.number"], KEYS, stream=STREAM)
    with pytest.raises(DecryptionError):
        encrypted.deserialize(json.dumps({"card": {"number": b64(changed)}}).encode())


def test_java_reads_the_vectors(java: Java) -> None:
    vectors = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    names = ("local_key", "wrapped", "id", "stream", "field", "sealed")
    requests = [["open", *(str(each[name]) for name in names)] for each in vectors]
    assert java(requests) == [each["plain"] for each in vectors]


def test_the_class_on_the_page_is_this_one() -> None:
    (shown,) = re.findall(r"```java\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown == (SOURCES / "FieldCipher.java").read_text()
