"""The files in deploy/ parse, and what they name exists: commands, options, settings, files, versions."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli.root import command_line

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
JOB = (DEPLOY / "copy_stream.py").read_text()


def manifests(kind: str) -> list[Any]:
    files = sorted(DEPLOY.glob("*.yaml"))
    assert len(files) >= 3
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one and one["kind"] == kind]


def containers() -> Iterator[Any]:
    for deployment in manifests("Deployment"):
        yield from deployment["spec"]["template"]["spec"]["containers"]


def commands() -> list[list[str]]:
    """The commands of each container and of its probes."""
    found = [container["command"] for container in containers()]
    probes = [probe["exec"]["command"] for c in containers() for name, probe in c.items() if name.endswith("Probe")]
    assert found
    assert probes
    return found + probes


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_and_their_options_exist(words: list[str]):
    assert words[0] in PROJECT["project"]["scripts"]
    command: click.Command | None = command_line
    rest = words[1:]
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), rest.pop(0))
    assert command is not None, "no such command"
    with click.Context(command) as context:
        # Every word is an argument or an option with its value.
        command.parse_args(context, rest)


def test_settings_are_those_that_a_client_reads():
    (access,) = [one["data"] for one in manifests("ConfigMap") if one["metadata"]["name"] == "pravega"]
    (secret,) = [one["stringData"] for one in manifests("Secret")]
    config = PravegaConfig.from_env(access | secret | {"pravega_client_auth_token": "dXNlcjpwYXNzd29yZA=="})
    assert config.controller == access["PRAVEGA_CONTROLLER_URI"]
    assert config.tls_ca_file == access["PRAVEGA_TLS_CA_FILE"]
    assert config.authorization == f"{secret['pravega_client_auth_method']} dXNlcjpwYXNzd29yZA=="
    assert secret["pravega_client_auth_token"] == "", "a secret in the repository"


def test_what_pods_refer_to_is_declared():
    declared = {(kind, one["metadata"]["name"]) for kind in ("ConfigMap", "Secret") for one in manifests(kind)}
    claims = {one["metadata"]["name"] for one in manifests("PersistentVolumeClaim")}
    pods = [one["spec"]["template"]["spec"] for one in manifests("Deployment")]
    pods += [one["spec"] for one in manifests("SparkApplication")]
    assert len(pods) == 2
    for pod in pods:
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for volume in volumes.values():
            assert volume.get("persistentVolumeClaim", {"claimName": None})["claimName"] in claims | {None}
            assert ("ConfigMap", volume.get("configMap", {"name": "pravega"})["name"]) in declared
        for container in pod.get("containers", ()) or (pod["driver"], pod["executor"]):
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
            for source in container.get("envFrom", ()):
                assert {(kind.removesuffix("Ref").capitalize().replace("map", "Map"), of["name"])
                        for kind, of in source.items()} <= declared  # fmt: skip


def test_driver_and_executors_have_the_credentials():
    """A password or token of the environment is never pickled, so a task reads its own."""
    (query,) = [one["spec"] for one in manifests("SparkApplication")]
    for pod in (query["driver"], query["executor"]):
        assert {"secretRef": {"name": "pravega-credentials"}} in pod["envFrom"]


def test_the_query_is_a_job_of_the_image():
    (query,) = [one["spec"] for one in manifests("SparkApplication")]
    folder = re.search(r"^COPY deploy/copy_stream\.py (\S+)$", DOCKERFILE, re.MULTILINE)
    assert folder
    assert query["mainApplicationFile"] == f"local://{folder.group(1)}copy_stream.py"
    options = [word for word in query["arguments"] if word.startswith("--")]
    assert all(f'"{option}"' in JOB for option in options)
    mounted = {mount["mountPath"] for mount in query["driver"]["volumeMounts"]}
    checkpoint = query["arguments"][query["arguments"].index("--checkpoint") + 1]
    assert any(checkpoint.startswith(f"{path}/") for path in mounted), "the checkpoint is on no volume"
    images = {query["image"], *(container["image"] for container in containers())}
    assert len(images) == 1


def test_the_image_has_versions_that_are_supported():
    (query,) = [one["spec"] for one in manifests("SparkApplication")]
    (image,) = re.findall(r"^ARG SPARK_IMAGE=spark:(\d+\.\d+\.\d+)-", DOCKERFILE, re.MULTILINE)
    (python,) = re.findall(r"^ARG PYTHON_IMAGE=python:(\d+)\.(\d+)-", DOCKERFILE, re.MULTILINE)
    assert image == query["sparkVersion"]
    (needed,) = [need for need in PROJECT["project"]["optional-dependencies"]["spark"] if need.startswith("pyspark")]
    least, below = re.findall(r"\d+\.\d+", needed)
    assert (
        tuple(map(int, least.split("."))) <= tuple(map(int, image.split(".")[:2])) < tuple(map(int, below.split(".")))
    )
    assert tuple(map(int, python)) >= (3, 11)


def test_the_image_is_built_of_what_is_here():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= set(names)
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert "hatch_build.py" in names, "the hook of the build"
    (extras,) = re.findall(r'"\$\{wheel\}\[([\w,-]+)\]"', DOCKERFILE)
    assert set(extras.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()
