"""Protocol of exactly-once work in steps: ingestion, mirrors, and readers of a group that write their output.

A run *claims* its items, writes a transaction, *records* it with the positions before and after, and *commits* it. The
next run that claims the items decides the recorded step first. :mod:`.machine` is the protocol, :mod:`.state` its log.
:mod:`.leader` is a run of a program that records each step before it writes it, and :mod:`.takeover` decides if it
waits for another run.
"""

from pravega_connector.exactly_once.steps.log import StepLog
from pravega_connector.exactly_once.steps.machine import Outcome, Turn
from pravega_connector.exactly_once.steps.state import ALL, Life, Named, Step, StepsState, Update

__all__ = ["ALL", "Life", "Named", "Outcome", "Step", "StepLog", "StepsState", "Turn", "Update"]
