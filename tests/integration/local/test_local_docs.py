"""The programs in docs/tools/local-server.md start the real servers that they name."""

import pytest

from tests.support import pages

pytestmark = pytest.mark.real_servers("the page is about them")
PAGE = "docs/tools/local-server.md"


@pytest.mark.long
def test_the_examples_run_unchanged(tmp_path):
    here = pages.run_by("tests/integration/local/test_local_docs.py")[PAGE]
    assert len(here) == 4
    follower = pages.Follower(tmp_path, "tcp://localhost:9090", "http://localhost:9092")
    for block in here:
        follower.run(block)
    follower.close()
