"""The worlds that are explored: what may go wrong in each, and how much of it at once."""

from __future__ import annotations

from tools.model.world_state import Config

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
    Config(2, 2, crash=1, leases=(5,), placements="EX"),
    Config(3, 1, leases=(6,), placements="EX"),
    Config(2, 1, crash=1, expiry=1, streams=2, placements="EPM"),
    Config(2, 1, crash=1, expiry=1, streams=2, placements="EOZ"),
    Config(2, 1, crash=1, seal=1, streams=2, placements="EM"),
    Config(2, 2, crash=1, expiry=1, streams=2),
    Config(3, 1, crash=1, streams=2, placements="EX", slow=True),
    Config(3, 1, crash=1, expiry=1, streams=2, placements="EXM"),
    Config(3, 1, crash=1, expiry=1, streams=3, placements="EP"),
    Config(3, 1, streams=2, leases=(7, 5), placements="EX"),
    Config(2, 1, streams=2, queries=2),
    Config(2, 2, streams=2, cut=(0, 1)),
    Config(3, 2, streams=3, first="TL", cut=(0, 1)),
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
    Config(2, 1, zombie=1, leases=(5,), placements="EX"),
    Config(2, 1, crash=1, expiry=1, leases=(5,), placements="EX"),
    Config(2, 2, unknown=1, leases=(5,), placements="EX"),
    Config(3, 2, leases=(6,), placements="EX"),
    Config(2, 1, crash=1, expiry=1, unknown=1, streams=2, placements="EPM"),
    Config(2, 1, crash=1, expiry=1, zombie=1, streams=2, placements="EM"),
    Config(2, 1, crash=2, expiry=2, streams=2, placements="EPM"),
    Config(2, 1, crash=1, expiry=1, forget=1, seal=1, streams=2, placements="EM"),
    Config(2, 1, seal=1, zombie=1, streams=2),
    Config(2, 1, crash=2, seal=2, streams=2),
    Config(2, 2, crash=1, seal=1, streams=2),
    Config(3, 1, crash=1, expiry=1, seal=1, streams=2, placements="EX"),
    Config(3, 1, crash=1, seal=1, streams=3),
    Config(3, 1, crash=1, unknown=1, streams=3, placements="EPM"),
    Config(3, 1, crash=1, expiry=1, streams=3, placements="EPMZ", slow=True),
    Config(3, 1, crash=1, expiry=1, streams=2, leases=(7, 5), placements="EX"),
    Config(3, 2, crash=1, streams=3),
    Config(2, 1, crash=1, streams=2, queries=2, placements="EM"),
    Config(2, 1, crash=1, expiry=1, streams=2, queries=2),
    Config(2, 1, seal=1, streams=2, queries=2),
    Config(2, 2, crash=1, streams=2, cut=(0, 1)),
    Config(3, 2, crash=1, streams=3, first="TL", cut=(0, 1)),
    Config(3, 2, streams=3, first="LT", cut=(0, 1)),
]

#: Without a lease that ends, or with equal replays of a single partition, nothing may ever be torn. A stream that is
#: sealed, deleted and recreated needs no operator either.
NEVER_TORN: list[Config] = [
    Config(2, 1, crash=2, unknown=2, placements="EX"),
    Config(2, 1, crash=1, unknown=1, zombie=1, placements="EX"),
    Config(2, 1, crash=2, expiry=2, placements="E"),
    Config(1, 2, crash=2, expiry=2, placements="EO"),
    Config(2, 1, crash=2, expiry=1, seal=1, streams=2),
    Config(3, 1, crash=2, unknown=1, streams=3, placements="EP"),
]
