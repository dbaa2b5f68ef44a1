"""Streams as tables of a lake: Delta or Iceberg, each event once, with the position of the stream in the commit.

A commit of the table adds the rows and the stream cut after them, atomically. So the table itself says how far the
stream is in it, and a run that was killed has no other state to lose. :func:`tier` is in ``run``, the two kinds of
tables are in ``delta`` and ``iceberg``, and what both have in common is in ``lake_table``. Reads of a table together
with the rest of its stream are in ``table_and_tail``.
"""

from pravega_connector.operations.tier.lake_table import TierPosition
from pravega_connector.operations.tier.merge import TierMerge
from pravega_connector.operations.tier.run import TierCounts, TierSettings, TierSummary, tier, tier_status
from pravega_connector.operations.tier.table_and_tail import read_table_and_tail, spark_table_and_tail

__all__ = [
    "TierCounts",
    "TierMerge",
    "TierPosition",
    "TierSettings",
    "TierSummary",
    "read_table_and_tail",
    "spark_table_and_tail",
    "tier",
    "tier_status",
]
