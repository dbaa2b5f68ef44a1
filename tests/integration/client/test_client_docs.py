"""The program in docs/client.md does what it says."""

import re
from pathlib import Path

from connector.client import PravegaClient

PAGE = Path(__file__).parents[3] / "docs" / "client.md"


def test_the_examples_run_as_they_stand(config, monkeypatch):
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", config.controller)
    names = {}
    exec(compile(program, str(PAGE), "exec"), names)
    with PravegaClient(config) as client:
        assert not client.stream_exists("shop/orders")
        assert len(client.describe("shop/clicks").segments) == 2
