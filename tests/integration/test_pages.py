"""The code on the pages runs unchanged: a page is a program."""

import pytest

from pravega_connector.client import PravegaClient
from tests.integration.conftest import remove_scopes
from tests.support import pages

RUN_HERE = pages.run_by(pages.ON_SERVERS)
#: Most of their commands start a process each. Separate tests have them in this process.
LONG = (
    "docs/serialization/confluent-and-apicurio.md",
    "docs/serialization/schema-registry.md",
    "docs/tools/command-line.md",
    "docs/tools/export-and-pipe.md",
    "docs/tools/generate.md",
    "docs/tools/ingest.md",
    "docs/tools/sniff.md",
)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.long if page in LONG else ()) for page in RUN_HERE]
)
def test_a_page_runs_unchanged(page: str, follower: pages.Follower) -> None:
    for block in RUN_HERE[page]:
        follower.run(block)


def test_what_a_page_has_left_is_removed(client: PravegaClient, scope: str) -> None:
    client.create_stream(f"{scope}/orders", 2)
    client.create_stream(f"{scope}/returns")
    client.seal_stream(f"{scope}/returns")
    client.create_stream(f"not{scope}/orders")
    remove_scopes(client, f'client.create_stream("{scope}/orders")')
    assert scope not in client.scopes()
    assert client.stream_exists(f"not{scope}/orders")
