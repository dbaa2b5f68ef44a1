"""The JSON Schema Test Suite, drafts 3 to 2020-12: each event is judged as the suite says, by row and by column."""

from __future__ import annotations

import collections
import json
import tarfile
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, SchemaError
from pravega_serde.json import JsonSerializer
from tests.foreign._corpora import JSON_SCHEMAS

DRAFTS = {
    "draft3": "http://json-schema.org/draft-03/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


@pytest.fixture(scope="module")
def groups() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    with tarfile.open(JSON_SCHEMAS.file()) as package:
        for member in package.getmembers():
            parts = member.name.split("/")
            # The optional ones are about formats, which are remarks here, and about other languages' patterns.
            if parts[1:3] == ["json", "tests"] and len(parts) == 5 and parts[4].endswith(".json"):
                file = package.extractfile(member)
                assert file is not None
                found[parts[3]] += [{**group, "file": parts[4]} for group in json.load(file)]
    return found


def _judged(group: dict[str, Any], draft: str) -> tuple[int, list[str]]:
    """How many events were judged, and those that were judged wrongly; SchemaError for a schema that is refused."""
    schema = group["schema"]
    if isinstance(schema, dict):
        schema = {"$schema": DRAFTS[draft], **schema}
    checked = JsonSerializer(schema=schema, arrow_type=pa.struct([("unlikely name", pa.string())]))
    wrong = []
    for test in group["tests"]:
        event = json.dumps(test["data"]).encode()
        try:
            checked.deserialize(event)
            valid = True
        except DeserializationError:
            valid = False
        if valid is not test["valid"]:
            wrong.append(f"{group['file']}: {group['description']}: {test['description']}")
        errors: list[DeserializationError] = []
        checked.decode_column(pa.array([event]), on_error=errors.append)
        # A column takes objects only; those that are valid are good there, too.
        assert bool(errors) is (not valid or not isinstance(test["data"], dict | None)), test
    return len(group["tests"]), wrong


#: Events that are judged, and schemas that are refused as a whole, with a reason: they refer to other documents (which
#: are never fetched), have a pattern whose time has no bound, or are of a private draft.
COUNTS = {
    "draft3": (427, {"refers to": 4}),
    "draft4": (593, {"refers to": 8}),
    "draft6": (799, {"refers to": 11}),
    "draft7": (883, {"refers to": 11}),
    "draft2019-09": (1157, {"refers to": 15, "pattern": 4, "unknown JSON schema draft": 2}),
    "draft2020-12": (1169, {"refers to": 20, "pattern": 4, "unknown JSON schema draft": 2}),
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_events_are_judged_as_the_suite_says(groups: dict[str, list[dict[str, Any]]], draft: str) -> None:
    judged, wrong, refused = 0, [], collections.Counter[str]()
    for group in groups[draft]:
        try:
            count, bad = _judged(group, draft)
        except SchemaError as error:
            refused[_reason(error)] += 1
        else:
            judged += count
            wrong += bad
    assert wrong == []
    assert (judged, refused) == COUNTS[draft]


def _reason(error: SchemaError) -> str:
    known = ("refers to", "unknown JSON schema draft", "pattern")
    return next((reason for reason in known if reason in error.message), error.message)
