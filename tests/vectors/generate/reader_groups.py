"""Writes reader_groups.jsonl: values of reader groups that the Java client's classes made, and their bytes."""

import json
import sys

from tests.interop._java_groups import JavaGroupStates

SEED = 19
COUNT = 88
LONGEST = 7000
"""Characters of a line: the few larger values are left to tests/interop, which makes thousands."""

if __name__ == "__main__":
    with JavaGroupStates() as java:
        for made in java.make(SEED, COUNT):
            line = json.dumps({name: made[name] for name in ("kind", "hex", "value")}, separators=(",", ":"))
            if len(line) <= LONGEST:
                sys.stdout.write(line + "\n")
