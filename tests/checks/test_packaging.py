"""Content of a release: its two files, their metadata, the workflows that build them, and what cites them."""

import json
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pravega_connector.exactly_once.batch_commit import entries
from pravega_connector.exactly_once.steps import state as steps_state
from pravega_connector.rows import offsets
from tools import site
from tools.packages import _build, _release
from tools.packages.__main__ import parser
from tools.packages.extras import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOME = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]
VERSION = PROJECT["project"]["version"]
FILES_AT_HOME = f"{HOME}/blob/v{VERSION}/"
PACKAGES = ["connector", "pravega_connector", "pravega_serde", "pyspark_pravega"]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> _build.Files:
    return _build.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def metadata(files: _build.Files) -> Metadata:
    return Metadata.from_email(files.metadata, validate=True)


def in_checkout(*folders: str) -> set[str]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if not {"__pycache__", ".mypy_cache"} & set(path.parts)}


def in_sdist(files: _build.Files) -> set[str]:
    with tarfile.open(files.sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_the_wheel_has_the_packages_and_nothing_else(files: _build.Files):
    with zipfile.ZipFile(files.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == {name for name in in_checkout(*PACKAGES) if not name.endswith((".java", ".md"))}
    # The jar exists if it was compiled before.
    assert {Path(name).suffix for name in names} - {".jar"} == {".py", ".pyi", ".typed", ".lock"}
    # Programs that are only run from a checkout are in tools/. These are processes that the product starts.
    programs = {
        name for name in names if name.endswith(".py") and '__name__ == "__main__"' in (ROOT / name).read_text()
    }
    assert programs == {
        "pravega_connector/local/supervisor.py",
        "pravega_connector/operations/cli/doctor_spark.py",
        "pravega_connector/spark/fork_server/probe.py",
        "pravega_connector/spark/fork_server/server.py",
        "pravega_connector/spark/jvm/support.py",
    }


def test_the_sdist_has_tests_pages_and_tools(files: _build.Files):
    found = in_sdist(files)
    folders = ("benchmarks", "connector", "deploy", "docs", "examples", "schemas", "tests", "tools", ".github")
    assert in_checkout(*folders) - found == set()
    pages = site.pages()
    needed = {str(file) for file in {*pages, *(file for page in pages for file in site.linked(page))}}
    assert needed - found == set()
    assert {
        "run",
        "LICENSE",
        "CITATION.cff",
        "zensical.toml",
        "hatch_build.py",
        "pyproject.toml",
        "requirements-lock.txt",
    } <= found
    assert [name for name in found if "__pycache__" in name or name.endswith((".pyc", ".class"))] == []


def test_metadata_say_what_the_project_is(metadata: Metadata):
    assert (metadata.name, str(metadata.version)) == ("pravega-serde", VERSION)
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.license_files == ["LICENSE"]
    assert metadata.author
    assert [each for each in metadata.classifiers or () if each.startswith("License ::")] == []  # PEP 639
    assert metadata.provides_extra is not None
    assert set(metadata.provides_extra) == set(PROJECT["project"]["optional-dependencies"])
    urls = metadata.project_urls or {}
    assert {"Homepage", "Documentation", "Source", "Issues", "Changes"} == urls.keys()
    assert [url for url in urls.values() if not f"{url}/".startswith(f"{HOME}/")] == []


def test_links_of_the_description_lead_to_files_at_the_home(files: _build.Files, metadata: Metadata):
    assert metadata.description_content_type == "text/markdown"
    links = re.findall(r"\]\(([^)\s]+)\)", metadata.description or "")
    assert len(links) > 30
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    pictures = re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", metadata.description or "")
    assert pictures
    assert [picture for picture in pictures if not picture.endswith(".svg?raw=true")] == []
    ours = {re.split("[#?]", link.removeprefix(FILES_AT_HOME))[0] for link in links if link.startswith(HOME)}
    assert len(ours) > 20
    assert ours - in_sdist(files) == set()
    assert re.findall(r"<(?:a|img)\s", metadata.description or "") == [], "links that nothing makes absolute"


def test_nothing_else_names_the_home():
    """One place says where the project is at home: it can be changed there."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("*.cff"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.yml")]
    assert len(texts) > 30
    assert [str(path) for path in texts if HOME in path.read_text()] == []


def test_the_lock_has_what_the_project_asks_for():
    """Each requirement accepts its locked versions. ``python -m tools.relock python`` updates the lock."""
    text = (ROOT / "requirements-lock.txt").read_text()
    assert "://" not in text
    blocks = re.findall(
        r"^(\S+)==(\S+)(?: ; .*)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    assert len(blocks) == len(re.findall("^[^#\\s]", text, re.MULTILINE)) > 100
    locked: dict[str, list[str]] = {}
    for name, version, _ in blocks:
        locked.setdefault(name, []).append(version)
    project = PROJECT["project"]
    asked = [*PROJECT["build-system"]["requires"], *project["dependencies"], "uv", "setuptools"]
    asked += [each for extra in project["optional-dependencies"].values() for each in extra]
    requirements = [each for each in map(Requirement, asked) if each.name != project["name"]]
    wrong = [
        str(each)
        for each in requirements
        if not all(map(each.specifier.contains, locked.get(canonicalize_name(each.name), ["0"])))
    ]
    assert wrong == []
    for extra in re.findall(r"^ +need_python (\w+)", (ROOT / "run").read_text(), re.MULTILINE):
        names = re.findall(f"^# {extra}: (.*)$", text, re.MULTILINE)[0].split()
        direct = [each for each in project["optional-dependencies"][extra] if not each.startswith(project["name"])]
        assert {canonicalize_name(Requirement(each).name) for each in direct} <= set(names) <= locked.keys()


def test_classifiers_are_the_pythons_of_ci():
    tried = WORKFLOWS["ci.yml"]["jobs"]["spark"]["strategy"]["matrix"]["python"]
    said = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert said == tried == WORKFLOWS["ci.yml"]["jobs"]["packages"]["strategy"]["matrix"]["python"]
    assert PROJECT["project"]["requires-python"] == f">={tried[0]}"


def test_ci_has_every_spark_that_the_extra_takes():
    (needed,) = [each for each in PROJECT["project"]["optional-dependencies"]["spark"] if each.startswith("pyspark")]
    least, below = (int(minor) for minor in re.findall(r"4\.(\d+)", needed))
    matrix = WORKFLOWS["ci.yml"]["jobs"]["spark"]["strategy"]["matrix"]
    assert matrix["spark"] == [f"4.{minor}" for minor in range(least, below)]
    assert min(map(int, matrix["java"])) == int(re.findall(r"^minimum_java=(\d+)", (ROOT / "run").read_text(), re.M)[0])


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_names_only_what_there_is(workflow: str):
    jobs = WORKFLOWS[workflow]["jobs"]
    for name, job in jobs.items():
        assert "timeout-minutes" in job, name
        assert {job.get("needs", name)} <= jobs.keys()
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), "a tag can be moved, a commit cannot"
            else:
                check_command(step["run"], job)


def check_command(line: str, job: dict[str, Any]) -> None:
    """A command of a workflow: one of ./run, a program of tools/ with its options, or one that runners have."""
    matrix = {name: values[-1] for name, values in job.get("strategy", {}).get("matrix", {}).items()}
    line = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match: matrix[match[1]], line)
    words = shlex.split(line.replace('"$GITHUB_REF_NAME"', "v1.0.0"))
    if words[0] == "./run":
        assert re.search(rf"^    {words[1]}\)$", (ROOT / "run").read_text(), re.MULTILINE), line
    elif words[:3] == ["python", "-m", "tools.packages"]:
        parser().parse_args(words[3:])
    elif words[:2] == ["python", "-m"]:
        assert words[2] in {"build", "pip", "twine"}, line
        installed = [word for step in job["steps"] for word in step.get("run", "").split()]
        assert words[2] in {"pip", *installed}, line
    else:
        assert words[0] == "echo", line


def test_only_the_job_that_publishes_may_sign():
    for workflow in WORKFLOWS.values():
        assert workflow["permissions"] == {"contents": "read"}
    release = WORKFLOWS["release.yml"]["jobs"]
    assert [name for name, job in release.items() if "permissions" in job] == ["publish"]
    assert release["publish"]["permissions"] == {"attestations": "write", "id-token": "write"}
    # It runs nothing that the checkout says: what was built and tried goes out as it is.
    assert [step["uses"].partition("@")[0] for step in release["publish"]["steps"]] == [
        "actions/download-artifact", "actions/attest", "pypa/gh-action-pypi-publish",
    ]  # fmt: skip


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == VERSION
    assert citation["license"] == PROJECT["project"]["license"]
    assert [each["name"] for each in citation["authors"]] == [each["name"] for each in PROJECT["project"]["authors"]]
    assert {"title", "message"} <= citation.keys()


def test_a_tag_is_published_only_if_everything_agrees(tmp_path, monkeypatch):
    def project(home: str, heading: str, cited: str) -> None:
        text = f'[project]\nversion = "1.2.3"\n[tool.hatch.metadata.hooks.custom]\nhome = "{home}"\n'
        (tmp_path / "pyproject.toml").write_text(text)
        (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n{heading}\n")
        (tmp_path / "CITATION.cff").write_text(f"title: it\nversion: {cited}\n")

    monkeypatch.setattr(_release, "ROOT", tmp_path)
    home = "https://forge.test/somebody/it"
    project(home, "## 1.2.3 (2027-01-31)", "1.2.3")
    assert _release.problems("v1.2.3", home) == []
    for tag, there, found in [
        ("v1.2.4", home, "the tag is v1.2.4"),
        ("v1.2.3", "https://forge.test/fork", "forge.test/fork"),
    ]:
        (problem,) = _release.problems(tag, there)
        assert found in problem
    project("https://example.org/it", "## 1.2.3 (not released)", "1.2.2")
    assert [re.findall("CHANGELOG|CITATION|placeholder", each)[0] for each in _release.problems("v1.2.3")] == [
        "CHANGELOG", "CITATION", "placeholder",
    ]  # fmt: skip


def test_each_extra_says_what_to_install_where_it_is_missing():
    ours = re.compile(r"^pravega-serde\[")
    extras = PROJECT["project"]["optional-dependencies"]
    of_users = {name for name, needs in extras.items() if not any(map(ours.match, needs))} - {"docs", "rust"}
    assert EXTRAS.keys() == of_users
    program = ROOT / "tools" / "packages" / "extras.py"
    command = [sys.executable, str(program), "--without"]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(ROOT)}, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        name: "works" if extra.has_fallback else "says so" for name, extra in EXTRAS.items()
    }


def test_readme_has_every_extra_of_users():
    page = (ROOT / "README.md").read_text()
    section = page.partition("## Install")[2].partition("\n## ")[0]
    assert [name for name in EXTRAS if not re.search(rf"`{name}`|[\[,]{name}[\],]", section)] == []


def test_the_page_on_compatibility_has_the_versions_of_the_code():
    page = (ROOT / "docs" / "reference/compatibility.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", page, re.MULTILINE)
    assert {state: int(version) for state, version in rows} == {
        "offsets of a query": offsets._VERSION,
        "committed batches": entries.FORMAT_VERSION,
        "position of an ingestion": steps_state._VERSION,
    }
