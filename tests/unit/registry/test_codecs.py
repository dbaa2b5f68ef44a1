"""Codecs: the bytes that Java's make, and what hostile ones cannot do."""

import gzip
import json
import random
import sys
import types
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError, MissingExtraError, SerializationError
from pravega_serde.errors import SerdeError, UnsupportedCodecError
from pravega_serde.registry import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, MAX_DECOMPRESSED_BYTES, Codec, codecs
from pravega_serde.registry.codecs import codec_named

LINES = (Path(__file__).parents[2] / "vectors" / "registry.jsonl").read_text().splitlines()
COMPRESSED = [vector for vector in map(json.loads, LINES) if "decompressed_hex" in vector]
CODECS = (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY)


def test_the_bytes_are_javas() -> None:
    assert len(COMPRESSED) == 8
    by_name = {codec.name: codec for codec in CODECS}
    for vector in COMPRESSED:
        codec = by_name[vector["encoding_info"]["codecType"]["name"]]
        stored, payload = bytes.fromhex(vector["hex"])[5:], bytes.fromhex(vector["decompressed_hex"])
        assert codec.unpack(stored, {}) == payload
        assert codec.pack(payload) == stored


@given(st.sampled_from(CODECS), st.binary(max_size=2000))
def test_what_was_packed_is_unpacked(codec: Codec, payload: bytes) -> None:
    assert codec.unpack(codec.pack(payload), {}) == payload


@given(st.binary(max_size=500))
def test_gzip_is_readable_by_others(payload: bytes) -> None:
    assert gzip.decompress(CODEC_GZIP.pack(payload)) == payload


@pytest.mark.parametrize("codec", [CODEC_GZIP, CODEC_SNAPPY], ids=["gzip", "snappy"])
def test_truncations_and_mutations_are_bad_data(codec: Codec) -> None:
    stored = codec.pack(bytes(range(256)) * 3)
    chance = random.Random(5)
    for size in range(len(stored)):
        with pytest.raises(DeserializationError):
            codec.unpack(stored[:size], {})
    for _ in range(3000):
        wrong = bytearray(stored)
        wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
        try:
            codec.unpack(bytes(wrong), {})
        except DeserializationError:
            pass


def test_gzip_members_follow_each_other_and_garbage_is_ignored() -> None:
    # As GZIPInputStream does it.
    stored = CODEC_GZIP.pack(b"one") + CODEC_GZIP.pack(b"two")
    assert CODEC_GZIP.unpack(stored, {}) == b"onetwo"
    assert CODEC_GZIP.unpack(stored + bytes(90), {}) == b"onetwo"


def test_bombs_stop_at_the_limit() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS + 16)
    zeros = b"".join([bomb.compress(bytes(1 << 20)) for _ in range(70)]) + bomb.flush()
    assert len(zeros) < 100_000
    with pytest.raises(LimitExceededError, match=str(MAX_DECOMPRESSED_BYTES)):
        CODEC_GZIP.unpack(zeros, {})
    with pytest.raises(LimitExceededError, match=str(MAX_DECOMPRESSED_BYTES)):
        CODEC_SNAPPY.unpack(bytes(cramjam.snappy.compress_raw(bytes(MAX_DECOMPRESSED_BYTES + 1))), {})
    with pytest.raises(LimitExceededError, match="members"):
        CODEC_GZIP.unpack(CODEC_GZIP.pack(b"") * 1000, {})


def test_a_snappy_block_cannot_claim_more_than_it_can_hold() -> None:
    # 32 MiB of three bytes: refused before it takes any memory.
    with pytest.raises(DeserializationError, match="cannot decompress"):
        CODEC_SNAPPY.unpack(bytes.fromhex("8080801000"), {})


def rotated(data: bytes, properties: Mapping[str, str]) -> bytes:
    return bytes((each - int(properties["by"])) & 0xFF for each in data)


def test_a_codec_of_the_users_own() -> None:
    codec = Codec("rotated", lambda data: bytes((each + 3) & 0xFF for each in data), rotated, {"by": "3"})
    assert codec.type.to_json() == {"name": "rotated", "properties": {"by": "3"}}
    assert codec.unpack(codec.pack(b"abc"), codec.properties) == b"abc"
    with pytest.raises(DeserializationError, match="'rotated' cannot decode"):
        codec.unpack(b"abc", {})
    with pytest.raises(SerializationError, match="'broken' cannot encode"):
        Codec("broken", lambda data: data[99:][0].to_bytes(), rotated).pack(b"")
    with pytest.raises(LimitExceededError):
        Codec("huge", bytes, lambda data, properties: bytes(MAX_DECOMPRESSED_BYTES + 1)).unpack(b"", {})


def test_codecs_have_short_names() -> None:
    assert [codec_named(name) for name in (None, "", "none", "GZip", " snappy")] == [
        CODEC_NONE, CODEC_NONE, CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY,
    ]  # fmt: skip
    with pytest.raises(UnsupportedCodecError, match=r"'zstd'.*known: none, gzip, snappy"):
        codec_named("zstd")


def test_snappy_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "_snappy_block", None)
    for call in (lambda: CODEC_SNAPPY.pack(b""), lambda: CODEC_SNAPPY.unpack(b"", {})):
        with pytest.raises(MissingExtraError, match=r"pravega-serde\[registry\]"):
            call()


# Codecs of the user's own


def _xor(payload: bytes) -> bytes:
    return bytes(byte ^ 0x5A for byte in payload)


def _unxor(stored: bytes, properties: Mapping[str, str]) -> bytes:
    return _xor(stored)


OWN = Codec("own", _xor, _unxor)


@pytest.mark.parametrize(
    ("encode", "decode", "words"),
    [
        (_xor, _xor, r"decode\(stored, properties\), but too many positional arguments"),
        (lambda: b"", _unxor, r"encode\(payload\), but too many positional arguments"),
        (_xor, lambda a, b, c: b"", "missing a required argument"),
        (_xor, b"key", "its decode is b'key', which cannot be called"),
    ],
)
def test_functions_that_cannot_be_called_so_are_refused_when_the_codec_is_made(
    encode: Any, decode: Any, words: str
) -> None:
    with pytest.raises(SerdeError, match=f"invalid codec 'own': .*{words}"):
        Codec("own", encode, decode)


def test_a_codec_is_found_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("their_codecs")
    module.secret = OWN  # type: ignore[attr-defined]
    module.other = 5  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_codecs", module)
    assert codec_named("their_codecs:secret") is OWN
    for place, words in (
        ("their_codecs:other", "is 5, not a pravega_serde.registry.Codec"),
        ("their_codecs:nope", "cannot be imported"),
        ("no_such_module:x", "cannot be imported: No module named"),
    ):
        with pytest.raises(UnsupportedCodecError, match=words):
            codec_named(place)
