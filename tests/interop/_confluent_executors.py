"""Executors of rules in confluent-kafka, which has one table of them for the whole process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.schema_registry.serde import RuleExecutor


@contextlib.contextmanager
def registered(*executors: RuleExecutor) -> Iterator[None]:
    """Let their serializers run these executors. Afterwards they run none, as in a new process."""
    LocalKmsDriver.register()
    for each in executors:
        RuleRegistry.register_rule_executor(each)
    yield
    RuleRegistry.get_global_instance().clear()
    for each in executors:
        each.close()
