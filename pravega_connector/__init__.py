"""Import name of the package ``connector`` that nothing else on a machine has.

``connector`` is a name that a user's own module may have: a ``connector.py`` beside a script comes first on the path,
and ours cannot be imported then. So Spark's Python processes find the data source by this name. The code lies in the
folder ``connector``, whose modules import each other relatively, and each is loaded once: ``connector.client`` and
``pravega_connector.client`` are one module.
"""

from pathlib import Path

__all__: list[str] = []

__path__ = [str(Path(__file__).parents[1] / "connector")]
