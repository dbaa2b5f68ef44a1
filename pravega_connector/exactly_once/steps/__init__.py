"""One protocol for exactly-once work in steps: ingestion, and readers of a group that write what they read.

A run *claims* what it works on, writes a transaction, *records* it with the positions before and after, and *commits*
it. Whoever claims next decides the recorded step first. :mod:`.machine` is the protocol, :mod:`.state` its log.
"""

from pravega_connector.exactly_once.steps.machine import Named, Outcome, Turn
from pravega_connector.exactly_once.steps.runner import StepLog
from pravega_connector.exactly_once.steps.state import ALL, Life, Step, StepsState, Update

__all__ = ["ALL", "Life", "Named", "Outcome", "Step", "StepLog", "StepsState", "Turn", "Update"]
