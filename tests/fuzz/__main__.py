"""Mutated events against the readers of a format, for as long as one likes: only a little of it is in the test runs.

``python -m tests.fuzz FORMAT [--inputs 1000000] [--seed N]`` first reads the format's bombs. Then it changes good
events of several schemas: bytes, cuts, splices, repetitions, inflated counts and lengths. Each result is read as a row
and in columns, by the fast path and by the plain one. Only ``DeserializationError`` may be raised, and both paths and
the rows must agree. No input may take more than a second of CPU time, and no input below a mebibyte more than 64 MiB of
memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz import FORMATS, load
from tests.fuzz._run import Totals, explode, fuzz

_HEX_SHOWN = 400


def _line(totals: Totals, start: float) -> str:
    return (
        f"{totals.inputs:>10,} inputs, {totals.good:,} of them good; at most {totals.seconds * 1000:.0f} ms and "
        f"{totals.mebibytes:.0f} MiB; {len(totals.findings)} findings; {time.monotonic() - start:.0f} s"
    )


def _report(totals: Totals, folder: Path) -> None:
    for number, finding in enumerate(totals.findings.values()):
        text = finding.event.hex()
        if len(text) > _HEX_SHOWN:
            file = folder / f"{number}.hex"
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            text = f"{text[:60]}... ({len(finding.event):,} bytes in {file})"
        print(f"{finding.target}: {finding.what}: {finding.detail:.400}\n    {text}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=sorted(FORMATS))
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="TEXT", help="only targets whose name contains this")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="folder for inputs too long to print")
    parser.add_argument("--compare", action="store_true", help="no bombs and no costs: only whether all ways agree")
    options = parser.parse_args()
    form, start, told = load(options.format, options.only), time.monotonic(), 0
    totals = Totals(measured=not options.compare)
    for target in form.targets if totals.measured else ():
        explode(target, totals)
    if totals.measured:
        print(f"bombs: {_line(totals, start)}", flush=True)
    totals.seconds = totals.mebibytes = 0.0
    for state in fuzz(form, options.inputs, options.seed, totals):
        if state.inputs >= told:
            told += 50_000
            print(_line(state, start), flush=True)
    print(_line(totals, start))
    _report(totals, options.findings)
    sys.exit(bool(totals.findings))


if __name__ == "__main__":
    main()
