"""A key service that Spark's processes and commands import by name."""

from pravega_serde.encryption import ConfluentKeys

#: Its name as an option.
NAME = f"{__name__}:KEYS"
KEYS = ConfluentKeys({"secret": "s3cret"})
