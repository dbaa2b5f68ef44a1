"""The code on the pages runs as it stands: a page is a program."""

import pytest

from pravega_connector.client import PravegaClient
from tests import pages
from tests.integration.conftest import remove_scopes

RUN_HERE = pages.run_by(pages.ON_SERVERS)
#: Pages that a new user follows. All others are ``long``.
FIRST = ("README.md", "docs/get-started/quick-start.md", "docs/client/read-and-write.md")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page in FIRST else pytest.mark.long) for page in RUN_HERE]
)
def test_a_page_runs_as_it_stands(page: str, follower: pages.Follower) -> None:
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
