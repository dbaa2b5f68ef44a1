"""Options of the JVMs that tests start."""

from typing import Final

__all__ = ["SOON_READY"]

#: What runs for seconds or minutes has nothing from a second compiler and a parallel collector but their work: a server
#: takes a third less of the processors with these.
SOON_READY: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
