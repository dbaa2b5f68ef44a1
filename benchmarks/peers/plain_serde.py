"""Our serializers without the packages of the ``fast`` extra: ``python -m benchmarks.peers.plain_serde COUNT``."""

from __future__ import annotations

import sys
from typing import Any, Final

_EXTRAS: Final = ("pyruhvro", "ptars")


def main(count: int) -> None:
    assert sys.modules.keys().isdisjoint(_EXTRAS), "they were imported before they could be hidden"
    for package in _EXTRAS:
        sys.modules[package] = None  # type: ignore[assignment]  # importing it fails
    from benchmarks.peers._serve import serve
    from benchmarks.serde._run import all_subjects
    from benchmarks.serde._subject import Subject, Work, ours, timed

    subjects: dict[str, Subject] = {subject.name: subject for subject in all_subjects(count)}
    ways: dict[str, dict[str, Work]] = {}

    def run(subject: str, way: str) -> dict[str, Any]:
        if subject not in ways:
            ways.clear()  # subjects are measured one after the other
            ways[subject] = ours(subjects[subject])
        return timed(ways[subject][way], len(subjects[subject].events))()

    serve(f"Python {sys.version.split()[0]}", {"run": run})


if __name__ == "__main__":
    main(int(sys.argv[1]))
