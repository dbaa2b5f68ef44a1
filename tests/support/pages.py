"""Code blocks on the pages of the site: the test that runs each, or the reason why none does.

A page is a program. Its blocks run in order, with one set of names, in one folder, on servers without its streams.
``python -m tests.support.pages`` counts them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import PravegaClient
from pravega_serde.registry import SchemaRegistryClient
from tests.support import shown_results
from tools import site

__all__ = [
    "CONFLUENT",
    "CONTROLLER",
    "ELSEWHERE",
    "FORMAT_WHEEL",
    "LANGUAGES",
    "NOT_RUN",
    "ON_SERVERS",
    "REGISTRY",
    "WITH_SPARK",
    "Block",
    "Follower",
    "blocks",
    "programs",
    "run_by",
    "who_runs",
]

#: Languages whose blocks are programs. The others show data, output, a signature (py) or a drawing.
LANGUAGES: Final = ("python", "sh", "sql")
_SHOWN: Final = ("java", "json", "py", "text", "toml", "yaml")

#: Addresses of the servers on the pages.
CONTROLLER: Final = "tcp://localhost:9090"
REGISTRY: Final = "http://localhost:9092"
CONFLUENT: Final = "http://localhost:8081"

#: Test that runs all other blocks, on the servers that ``--pravega`` chooses.
ON_SERVERS: Final = "tests/integration/test_pages.py"
#: The same with a Spark session.
WITH_SPARK: Final = "tests/integration/spark/test_pages.py"
#: The same with an installed package, whose format the page uses.
FORMAT_WHEEL: Final = "tests/integration/test_format_wheel.py"

#: Other tests: a page, ``page#section`` or ``page:first words`` -> the test, which names the page. The more specific
#: line applies.
ELSEWHERE: Final[Mapping[str, str]] = {
    "README.md:from pyspark": WITH_SPARK,
    "docs/spark/batches-and-ordering.md": WITH_SPARK,
    "docs/spark/dead-letter-queue.md": WITH_SPARK,
    "docs/spark/event-time.md": WITH_SPARK,
    "docs/operate/deploy.md#Deploy Spark jobs": WITH_SPARK,
    "docs/spark/exactly-once.md": WITH_SPARK,
    "docs/tools/ingest-kafka.md": "tests/integration/ingest/test_kafka.py",
    "docs/tools/local-server.md": "tests/integration/local/test_local_docs.py",
    "docs/reference/options.md": WITH_SPARK,
    "docs/client/notebooks.md#With Spark": WITH_SPARK,
    "docs/operate/monitoring.md": WITH_SPARK,
    "docs/serialization/confluent-and-apicurio.md#Spark": WITH_SPARK,
    "docs/serialization/change-events.md#Drop repeated events": WITH_SPARK,
    "docs/serialization/change-events.md#Keep the current rows": WITH_SPARK,
    "docs/serialization/change-events.md#Read changes in Spark": WITH_SPARK,
    "docs/serialization/envelopes.md#Spark": WITH_SPARK,
    "docs/serialization/schema-registry.md#Spark": WITH_SPARK,
    "docs/serialization/encrypt-fields.md#Spark": WITH_SPARK,
    "docs/serialization/write-a-format.md#Use it": FORMAT_WHEEL,
    "docs/serialization/write-a-format.md#Use it in Spark": FORMAT_WHEEL,
    "docs/serialization/schema-registry.md#Column functions": WITH_SPARK,
    "docs/serialization/schema-registry.md#SQL": WITH_SPARK,
    "docs/get-started/from-spark-connector.md": WITH_SPARK,
    "docs/get-started/quick-start.md#4. Read the stream in Spark": WITH_SPARK,
    "docs/get-started/quick-start.md#5. Write each row exactly once": WITH_SPARK,
    "docs/spark/key-value-tables.md": WITH_SPARK,
    "docs/spark/lakehouse.md": WITH_SPARK,
    "docs/spark/lakehouse.md#Delta Lake with the deltalake package": "tests/integration/spark/test_lakehouse_docs.py",
    "docs/spark/monitoring.md": WITH_SPARK,
    "docs/spark/read-and-write.md": WITH_SPARK,
    "docs/spark/schemas-and-formats.md": WITH_SPARK,
    "docs/spark/spark-3.5.md": WITH_SPARK,
    "docs/spark/sql.md": WITH_SPARK,
    "docs/spark/sql.md#Spark Connect": "tests/integration/spark/test_sql_elsewhere.py",
    "docs/spark/sql.md#Declarative Pipelines": "tests/integration/spark/test_sql_elsewhere.py",
    "docs/spark/versions.md": WITH_SPARK,
    "docs/tools/test-kit.md": "tests/unit/testing/test_page.py",
    "docs/tools/test-kit.md#A Spark job": "tests/integration/spark/test_kit.py",
}

_INSTALLS: Final = "installs packages"
_CHECKOUT: Final = "is a command of the checkout, which CI itself runs, or which runs for long"
_ENDLESS: Final = "goes on until it is stopped; its arguments are checked by "
_FIXED_PORTS: Final = "starts servers on fixed ports; on free ones tests/integration/local/test_detached.py runs it"
_TWO_CLUSTERS: Final = "needs two clusters; tests/integration/mirror/test_mirror_cli.py has them"
_CLUSTER: Final = "needs a Spark cluster"
_JAR: Final = "needs a jar for the Spark of the tests; those that were found are for Spark 4.1"
_TORN: Final = "needs a partially committed batch, as in tests/integration/exactly_once/test_ledger.py"

#: Blocks that no test runs -> the reason.
NOT_RUN: Final[Mapping[str, str]] = {
    "docs/spark/lakehouse.md#Delta Lake with its Spark connector": _JAR,
    "docs/spark/lakehouse.md#Iceberg": _JAR,
    "CONTRIBUTING.md": _CHECKOUT,
    "README.md#Two commands in a checkout": _CHECKOUT,
    "README.md#Install": _INSTALLS,
    "benchmarks/README.md": _CHECKOUT,
    "deploy/README.md": "builds an image, and needs a Kubernetes cluster and linters from elsewhere",
    "docs/tools/command-line.md#Completion": "is for the file that an interactive shell of one of three kinds reads",
    "docs/operate/deploy.md": _CLUSTER,
    "docs/tools/export-and-pipe.md:tail -F": _ENDLESS + "tests/checks/test_named_on_pages.py",
    "docs/tools/local-server.md:pravega-serde": _FIXED_PORTS,
    "docs/tools/mirror.md:pravega-serde mirror shop/orders backup/orders --follow": _TWO_CLUSTERS,
    "docs/tools/local-server.md#Compile Java programs": "needs a program in Java",
    "docs/tools/local-server.md#Download and cache": "needs a mirror of Maven Central",
    "docs/get-started/install.md": _INSTALLS,
    "docs/operate/monitoring.md#Metrics, dashboard and alert rules": _ENDLESS + "tests/checks/test_docs.py",
    "docs/operate/troubleshooting.md#PRAVEGA-TORN-BATCH": _TORN,
    "docs/operate/troubleshooting.md#UNDECIDABLE batches": _TORN,
    "docs/get-started/quick-start.md#1. Start a server": _INSTALLS,
    "docs/reference/metrics.md:pip install": _INSTALLS,
    "docs/reference/metrics.md:pravega-serde": _ENDLESS + "tests/integration/test_metrics.py",
    "examples/README.md": "are programs that run side by side; tests/integration/spark/test_examples.py runs them",
    "docs/tools/test-kit.md#Limitations": "is a suite itself",
}


@dataclass(frozen=True)
class Block:
    """Fenced block: its position and its text."""

    page: str
    line: int
    section: str
    language: str
    text: str

    def found_in(self, table: Mapping[str, str]) -> str | None:
        """Return the key of a table that applies to this block, or None.

        A key names a block by its first words, a section, or a page.
        """
        head = f"{self.page}:"
        words = [each for each in table if each.startswith(head) and self.text.startswith(each.removeprefix(head))]
        return next((place for place in (*words, f"{self.page}#{self.section}", self.page) if place in table), None)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """Return the blocks of a page in order.

    Raises ValueError for a fence without a language, or with an unknown one.
    """
    found = []
    section, language, start = "", None, 0
    lines = (site.ROOT / page).read_text().splitlines()
    for number, line in enumerate(lines, 1):
        fence = re.match(r"\s*```(\S*)", line)
        if fence is None:
            if language is None and (heading := re.match(r"#+ (.*)", line)):
                section = heading[1].replace("`", "")
        elif language is None:
            language, start = fence[1], number
            if language not in LANGUAGES + _SHOWN:
                raise ValueError(f"{page}:{number}: a block of language {language!r}; known are {LANGUAGES + _SHOWN}")
        else:
            text = "".join(f"{each}\n" for each in lines[start : number - 1])
            found.append(Block(page, start, section, language, text))
            language = None
    return tuple(found)


def programs() -> Iterator[Block]:
    """Yield the blocks of all pages that are programs."""
    for page in site.pages():
        yield from (block for block in blocks(str(page)) if block.language in LANGUAGES)


def who_runs(block: Block) -> str | None:
    """Return the test that runs a block, or None if no test runs it."""
    left, run = block.found_in(NOT_RUN), block.found_in(ELSEWHERE)
    # A key for a section or a block is more specific than a key for a page.
    if left is not None and (run is None or len(left) > len(run)):
        return None
    return ON_SERVERS if run is None else ELSEWHERE[run]


def run_by(test: str) -> dict[str, list[Block]]:
    """Return the pages with the blocks that a test runs."""
    found: dict[str, list[Block]] = {}
    for block in programs():
        if who_runs(block) == test:
            found.setdefault(block.page, []).append(block)
    return found


@dataclass
class Follower:
    """Reader of a page who runs one block after the other, in a folder, with the servers at other addresses.

    ``names`` are the names of the Python blocks. At first, they are ``controller``, ``folder`` and, if there is a
    session, ``spark``. Pages use these without defining them. ``spark`` runs SQL. Checkpoints are in the folder, too.
    """

    folder: Path
    controller: str
    registry: str
    confluent: str = CONFLUENT
    names: dict[str, Any] = field(default_factory=dict)
    spark: Any = None
    packages: tuple[Path, ...] = ()
    """Folders of installed packages for the commands of shells."""

    def __post_init__(self) -> None:
        self.names.update(controller=self.controller, folder=self.folder)

    def close(self) -> None:
        """Close the clients that the page has left open."""
        for each in self.names.values():
            if isinstance(each, PravegaClient | SchemaRegistryClient):
                each.close()

    def run(self, block: Block) -> str:
        """Run a block, and return the standard output of a shell. Raises the error of a Python block.

        Raises AssertionError if the result of a statement differs from the comment that shows it.
        """
        text = block.text.replace(CONTROLLER, self.controller).replace(REGISTRY, self.registry)
        text = text.replace(CONFLUENT, self.confluent)
        # Spark resolves paths in the folder in which its JVM was started.
        text = text.replace('"checkpoints/', f'"{self.folder}/checkpoints/')
        if block.language == "python":
            shown_results.run(text, block.page, block.line, self.names)
            return ""
        if block.language == "sql":
            for statement in re.split(r";\s*$", text, flags=re.MULTILINE):
                if statement.strip():
                    self.spark.sql(statement).collect()
            return ""
        return self._shell(block, text)

    def _shell(self, block: Block, text: str) -> str:
        programs = self.folder / ".bin"
        command = programs / "pravega-serde"
        if not command.exists():
            programs.mkdir()
            program = "from pravega_connector.operations.cli import main; main()"
            command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n')
            command.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, (site.ROOT, *self.packages))),
            "PRAVEGA_CONTROLLER_URI": self.controller,
            "XDG_CONFIG_HOME": str(self.folder / "no profiles"),
        }
        done = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, f"{block} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout


def main() -> None:
    """Print the number of blocks, and how many each test runs."""
    every = list(programs())
    pages = {block.page for block in every}
    shown = sum(len(blocks(str(page))) for page in site.pages()) - len(every)
    print(f"{len(site.pages())} pages, {len(every)} programs on {len(pages)} of them, {shown} blocks of other things")
    for test, count in Counter(map(who_runs, every)).most_common():
        print(f"{count:4} {test or 'not run:'}")
        if test is None:
            left = (block.found_in(NOT_RUN) for block in every if who_runs(block) is None)
            for reason, number in Counter(NOT_RUN[place] for place in left if place is not None).most_common():
                print(f"     {number:4} {reason}")


if __name__ == "__main__":
    main()
