"""The client's examples in docs/registry.md do what the page says."""

import re
from pathlib import Path

from connector.local import LocalSchemaRegistry
from connector.testing import InProcessRegistry

PAGE = Path(__file__).parents[3] / "docs" / "registry.md"


def test_the_examples_run(on_kit):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    client, check = (next(block for block in blocks if word in block) for word in ("client =", "check_compatibility("))
    names = {}
    with InProcessRegistry() if on_kit else LocalSchemaRegistry() as registry:
        exec((client + check).replace("http://localhost:9092", registry.uri), names)
        names["client"].close()
    assert names["encoding_id"] == 0
    assert f"# {names['reasons']}" == check.strip().splitlines()[-1]
