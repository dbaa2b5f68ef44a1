"""Key services of the clouds, through the drivers of confluent-kafka, which reads and writes on the other side."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop import _clouds
from tests.unit.registry._rules import AVRO, encrypting, register, served_registry

#: Cloud -> its service here, and the calls that it gets.
CLOUDS: Final[dict[str, tuple[Callable[[Path], AbstractContextManager[_clouds.Fake]], set[str]]]] = {
    "aws": (_clouds.aws, {"Encrypt", "Decrypt"}),
    "azure": (_clouds.azure, {"token", "get", "encrypt", "decrypt"}),
    "gcp": (_clouds.gcp, {"CONNECT cloudkms.googleapis.com:443", "Encrypt", "Decrypt"}),
}
#: The clients of the clouds get addresses and authorities from the environment, some once in a process.
_PROGRAM: Final = """
import json, sys
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.encryption.{module} import {driver}
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
from confluent_kafka.serialization import MessageField, SerializationContext
from pravega_serde.encryption import ConfluentKeys
from pravega_serde.errors import EncryptionKeyError
from pravega_serde.registry import deserializer, serializer

uri, schema, config, value, other = json.loads(sys.argv[1])
ctx = lambda topic: SerializationContext(topic, MessageField.VALUE)
with SchemaRegistryClient({{"url": uri}}) as client:
    {driver}.register()
    RuleRegistry.register_rule_executor(FieldEncryptionExecutor())
    latest = {{"auto.register.schemas": False, "use.latest.version": True}}
    write = AvroSerializer(client, json.dumps(schema), conf=latest, rule_conf=config)
    read = AvroDeserializer(client, rule_conf=config)
    found = []
    for topic, first in (("ours", True), ("theirs", False)):  # the first one creates the data key
        place = dict(registry=f"confluent+{{uri}}", group=f"{{topic}}-value", key_service=ConfluentKeys(config))
        made = []
        for ours in (first, not first):
            if ours:
                made.append(serializer(**place, schema=schema, format="avro").serialize(value))
            else:
                made.append(write(dict(value), ctx(topic)))
        for event in made:
            assert b"4111" not in event
            found += [read(event, ctx(topic)), deserializer(**place).deserialize(event)]
print(json.dumps(found))
try:
    ConfluentKeys(config).unwrap(other, b"none|of these")
except Exception as error:
    print(type(error).__name__)
"""
_DRIVERS: Final = {
    "aws": ("awskms.aws_driver", "AwsKmsDriver"),
    "azure": ("azurekms.azure_driver", "AzureKmsDriver"),
    "gcp": ("gcpkms.gcp_driver", "GcpKmsDriver"),
}


@pytest.mark.long
@pytest.mark.parametrize("cloud", CLOUDS)
def test_keys_in_a_cloud_both_ways(cloud: str, tmp_path: Path) -> None:
    """Its key service is a fake here; its client and Confluent's driver are the real ones."""
    serve, calls = CLOUDS[cloud]
    module, driver = _DRIVERS[cloud]
    value: dict[str, Any] = {"id": 7, "card": "4111", "tags": ["a"]}
    with contextlib.ExitStack() as stack:
        registry, uri = stack.enter_context(served_registry())
        fake = stack.enter_context(serve(tmp_path))
        kind, _, key = fake.key.partition("://")
        given = encrypting("AES256_SIV")
        params = {**given["params"], "encrypt.kms.type": kind, "encrypt.kms.key.id": key}
        for topic in ("ours", "theirs"):
            register(registry, f"{topic}-value", AVRO, {**given, "params": {**params, "encrypt.kek.name": topic}})
        clean = {name: each for name, each in os.environ.items() if not name.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
        program = _PROGRAM.format(module=module, driver=driver)
        ran = subprocess.run(
            [sys.executable, "-c", program, json.dumps([uri, AVRO, fake.config, value, fake.key])],
            check=False,
            env={**clean, **fake.environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found, error = ran.stdout.splitlines()
    assert json.loads(found) == [value] * 8
    assert error.endswith("Error")
    assert set(fake.calls) == calls
