"""The worlds that are explored: what may go wrong in each, and how much of it at once."""

from __future__ import annotations

from tools.model.world import Config

#: Seconds together: part of the tests.
SMALL: list[Config] = [
    Config(1, 2, crash=1, expiry=1, placements="EO"),
    Config(1, 1, unknown=1, zombie=1, placements="EO"),
    Config(2, 1, crash=1, expiry=1, placements="EPXZ"),
    Config(2, 1, crash=1, expiry=1, placements="EON"),
    Config(2, 1, crash=1, expiry=1, unknown=1, placements="EX"),
    Config(2, 1, unknown=1, zombie=1),
    Config(2, 1, crash=2, forget=1, placements="EX"),
    Config(2, 2, crash=1, expiry=1, placements="EXZ"),
    Config(3, 1, crash=1, expiry=1, placements="EX"),
    Config(2, 2, crash=1, targets=2, placements="EZ"),
    Config(2, 2, crash=1, lease=5, placements="EX"),
    Config(3, 1, lease=6, placements="EX"),
]

#: Minutes together: all that the small worlds leave out.
FULL: list[Config] = [
    *SMALL,
    Config(1, 1, crash=1, unknown=1, zombie=1, placements="EO"),
    Config(2, 1, crash=1, expiry=1, zombie=1, placements="EX"),
    Config(2, 1, crash=1, expiry=1, zombie=1, placements="EO"),
    Config(2, 1, crash=1, expiry=1, unknown=1, placements="EPXO"),
    Config(2, 1, crash=1, expiry=1, unknown=1, forget=1, placements="EX"),
    Config(2, 1, crash=2, expiry=2, placements="EXO"),
    Config(2, 1, crash=3, expiry=1, placements="EX"),
    Config(2, 1, crash=1, expiry=2, zombie=1, placements="EX"),
    Config(2, 1, crash=1, expiry=2, unknown=1, placements="EPX"),
    Config(2, 1, expiry=1, unknown=1, zombie=1, placements="EX"),
    Config(2, 1, expiry=1, unknown=1, zombie=1, placements="EO"),
    Config(2, 1, crash=1, expiry=1, unknown=1, placements="EZ"),
    Config(2, 2, crash=2, expiry=2, placements="EX"),
    Config(2, 2, crash=1, expiry=1, placements="EXO"),
    Config(1, 2, crash=1, expiry=1, unknown=1, zombie=1, placements="EO"),
    Config(1, 3, crash=2, expiry=2, placements="EO"),
    Config(2, 3, crash=1, expiry=1, placements="EXZ"),
    Config(2, 2, crash=1, expiry=1, zombie=1, placements="EX"),
    Config(2, 1, crash=2, expiry=2, forget=2, placements="EX"),
    Config(3, 1, crash=2, expiry=1, placements="EX"),
    Config(3, 1, crash=1, expiry=1, unknown=1, placements="EX"),
    Config(2, 1, crash=1, expiry=1, zombie=1, targets=2, placements="E"),
    Config(2, 2, crash=1, expiry=1, targets=2, placements="EXZ"),
    Config(2, 1, zombie=1, lease=5, placements="EX"),
    Config(2, 1, crash=1, expiry=1, lease=5, placements="EX"),
    Config(2, 2, unknown=1, lease=5, placements="EX"),
    Config(3, 2, lease=6, placements="EX"),
]

#: Without a lease that ends, or with equal replays of a single partition, nothing may ever be torn.
NEVER_TORN: list[Config] = [
    Config(2, 1, crash=2, unknown=2, placements="EX"),
    Config(2, 1, crash=1, unknown=1, zombie=1, placements="EX"),
    Config(2, 1, crash=2, expiry=2, placements="E"),
    Config(1, 2, crash=2, expiry=2, placements="EO"),
]
