"""The documentation site: addresses, links, descriptions and versions of a build."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tools import site

SEARCHED: Final = {  # what users search for, and how the address of one of the first three results begins
    "retry": "docs/operate/failover-and-guarantees/",
    "resume": "docs/client/read-and-write/",
    "latency": "docs/operate/tuning/",
    "limitations": "docs/get-started/why/",
    "troubleshooting": "docs/operate/troubleshooting/",
    "fault tolerance": "docs/operate/failover-and-guarantees/",
    "monitoring": "docs/operate/monitoring/",
    "tuning": "docs/operate/tuning/",
    "migration": "docs/get-started/from-",
    "schema evolution": "docs/serialization/schema-evolution/",
    "backpressure": "docs/operate/tuning/",
    "getting started": "docs/get-started/quick-start/",
    "consumer group": "docs/client/reader-groups/",
    "dead letter queue": "docs/spark/dead-letter-queue/",
    "docker": "deploy/",
}
ADDRESS: Final = "https://docs.test/it"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a site with an earlier version and the present one."""
    folder = tmp_path_factory.mktemp("built")
    earlier = folder / "site" / "0.0.9"
    earlier.mkdir(parents=True)
    (earlier / "sitemap.xml").touch()
    assert site.build(folder, address=ADDRESS) == 0
    return folder / "site"


class _Page(HTMLParser):
    """Targets and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.descriptions: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if "src" in values:
            self.loaded.add(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.add(values["href"])
        if tag == "meta" and values.get("name") == "description":
            self.descriptions.append(values["content"])


@pytest.fixture(scope="module")
def read(built: Path) -> dict[str, _Page]:
    """Pages of the present version by their address."""
    found = {}
    for file in [*(built / site.version()).rglob("*.html"), built / "404.html"]:
        page = _Page()
        page.feed(file.read_text())
        found[f"{ADDRESS}/{file.relative_to(built).as_posix().removesuffix('index.html')}"] = page
    return found


def _file(built: Path, address: str) -> Path:
    path = built / unquote(urlsplit(address).path).removeprefix("/it/")
    return path / "index.html" if address.endswith("/") else path


def test_every_link_leads_to_a_page_and_an_anchor(built: Path, read: dict[str, _Page]):
    links = {(page, urljoin(page, link)) for page, found in read.items() for link in found.links | found.loaded}
    ours = {(page, link) for page, link in links if link.startswith(ADDRESS)}
    assert len(ours) > 3000
    broken = []
    for page, link in sorted(ours):
        address, _, anchor = link.partition("#")
        known = read[address].anchors if address in read else set()
        if not _file(built, address).is_file() or (anchor and address in read and unquote(anchor) not in known):
            broken.append((page, link))
    assert broken == []


def test_nothing_is_loaded_from_another_host(read: dict[str, _Page]):
    loaded = {urljoin(page, each) for page, found in read.items() for each in found.loaded}
    assert {each for each in loaded if not each.startswith((f"{ADDRESS}/", "data:"))} == set()


def test_no_code_shows_the_escape_of_a_pipe(built: Path):
    texts = {page: page.read_text() for page in (built / site.version()).rglob("*.html")}
    assert sum("<code>str | None</code>" in text for text in texts.values()) > 1
    assert [page for page, text in texts.items() if re.search(r"<td[^>]*>[^\n]*\\\|", text)] == []


def test_every_page_has_its_own_description(read: dict[str, _Page]):
    described = {page: found.descriptions for page, found in read.items() if not page.endswith("404.html")}
    assert [page for page, texts in described.items() if len(texts) != 1 or not 20 <= len(texts[0]) <= 300] == []
    assert len({texts[0] for texts in described.values()}) == len(described) == len(site.pages())


@pytest.mark.parametrize("name", ["sitemap.xml", "llms.txt"])
def test_the_lists_have_all_pages(built: Path, name: str):
    addresses = re.findall(rf"{ADDRESS}/[^<)\s]*", (built / site.version() / name).read_text())
    assert len(addresses) == len(set(addresses)) == len(site.pages())
    assert [address for address in addresses if not _file(built, address).is_file()] == []


def test_versions_are_listed_with_the_newest_first(built: Path):
    listed = [entry["version"] for entry in json.loads((built / "versions.json").read_text())]
    assert listed == [site.version(), "0.0.9"]
    assert f'url={site.version()}/"' in (built / "index.html").read_text()


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r"<[^>]+>", " ", text).lower())


def _found(items: list[dict[str, str]], query: str) -> list[str]:
    """Pages with all words of the query in one section, the best first: in the title, in a heading, or often."""
    scores: Counter[str] = Counter()
    for item in items:
        title, text = _words(item["title"]), _words(item["text"])
        score = 0
        for word in _words(query):
            in_title = any(each.startswith(word) for each in title)
            in_text = sum(each.startswith(word) for each in text)
            if not in_title and not in_text:
                break
            score += (10 if item["level"] == 1 else 5) * in_title + min(in_text, 4)
        else:
            page = item["location"].partition("#")[0]
            scores[page] = max(scores[page], score)
    return [page for page, _ in scores.most_common()]


@pytest.mark.parametrize(("query", "page"), SEARCHED.items())
def test_the_words_of_the_field_lead_to_the_page_with_the_answer(built: Path, query: str, page: str):
    items = json.loads((built / site.version() / "search.json").read_text())["items"]
    assert [found for found in _found(items, query)[:3] if found.startswith(page)]


def test_the_repository_link_is_the_home(read: dict[str, _Page]):
    assert [page for page, found in read.items() if site.home() not in found.links] == []


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (
            "# T\n\nShort one. And `more` with [a link](x.md). Then the rest.",
            "Short one. And more with a link. Then the rest.",
        ),
        (
            "# T\n\n```python\n# a comment\n```\n\n- a list\n\n| a | table |\n\nIt *is* this:\n\n## Next\n",
            "It is this.",
        ),
        ("# The `title`\n\n## Next\n\nText.", "pravega-serde: The title."),
    ],
)
def test_a_description_is_the_beginning_of_the_first_paragraph(text: str, described: str):
    assert site.describe(text) == described
