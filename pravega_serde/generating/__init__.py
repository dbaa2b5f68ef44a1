"""Generation of code: :func:`generate`.

- ``targets`` selects the generator, and ``code`` has its files.
- ``java_model`` prepares the classes in events, ``java_source`` writes them in Java, ``python_source`` in Python.
- ``identifiers`` turns names in events into identifiers.
"""

from pravega_serde.generating.code import GeneratedCode
from pravega_serde.generating.targets import Target, generate

__all__ = ["GeneratedCode", "Target", "generate"]
