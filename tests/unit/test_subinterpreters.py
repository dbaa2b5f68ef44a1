"""An import in a subinterpreter says why it is refused. It would hang in pyarrow."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
name, path = sys.argv[1], sys.path
try:
    import _interpreters
    create, run = (lambda: _interpreters.create("legacy")), _interpreters.run_string
except ImportError:
    import _xxsubinterpreters
    create, run = (lambda: _xxsubinterpreters.create(isolated=False)), _xxsubinterpreters.run_string
run(create(), f'''
import sys
sys.path[:] = {path!r}
try:
    import {name}
except ImportError as error:
    print(error, flush=True)
''')
"""


@pytest.mark.parametrize("name", ["pravega_serde", "pravega_connector", "pravega_serde.columnar", "connector.client"])
def test_an_import_in_a_subinterpreter_is_refused(name: str) -> None:
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    assert "cannot be imported in a subinterpreter" in done.stdout
    assert "use a process or a thread instead" in done.stdout
