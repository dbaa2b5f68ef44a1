"""Options of the JVMs that tests start."""

from typing import Final

__all__ = ["SOON_READY"]

#: A JVM that runs for seconds or minutes gains nothing from a second compiler or a parallel collector.
SOON_READY: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
