"""The error that plain readers and writers raise inside: it learns its place on the way out."""

from __future__ import annotations

__all__ = ["MalformedError"]


class MalformedError(ValueError):
    """Bytes, or a value, that do not fit; ``path`` is filled while the error rises through the structure."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def within(self, step: str) -> MalformedError:
        """The same error, seen from one level further out."""
        self.path.append(step)
        return self

    def field_path(self) -> str:
        """Where it is: ``$.a[0].b``."""
        return "$" + "".join(reversed(self.path))
