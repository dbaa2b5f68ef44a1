"""Pictures of the documentation: up to date, readable in both color schemes, without requests to other hosts."""

import re
import xml.etree.ElementTree as ET

import pytest

from tools import site
from tools.pictures import FOLDER, PICTURES
from tools.pictures.drawing import Drawing
from tools.pictures.packages import layers


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_code_draws(name: str):
    assert PICTURES[name]() == (FOLDER / name).read_text(), "draw it again: python -m tools.pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_two_schemes_and_needs_nothing_else(name: str):
    text = (FOLDER / name).read_text()
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r'(?:href|src)=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg")', text) == []
    root = ET.fromstring(text)
    assert root.attrib.keys() >= {"viewBox", "width", "height"}
    assert root.findtext("{http://www.w3.org/2000/svg}title")


def test_there_are_no_other_pictures():
    assert {file.name for file in FOLDER.iterdir()} == PICTURES.keys()


def test_every_picture_on_a_page_has_a_description():
    found = [
        (page, alt, target)
        for page in site.pages()
        for alt, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", (site.ROOT / page).read_text())
    ]
    assert [each for each in found if len(each[1]) < 20] == []


def test_the_layers_have_every_package():
    packages = {
        path.stem
        for path in (site.ROOT / "pravega_connector").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    drawn = [name for layer in layers() for name in layer]
    assert sorted(drawn) == sorted({*packages, "pyspark_pravega", "pravega_serde"} - {"__init__"})


def test_a_text_without_room_is_an_error():
    drawing = Drawing(100, 50, "small")
    with pytest.raises(ValueError, match="leaves the picture"):
        drawing.text(80, 20, "too long for it")
    with pytest.raises(ValueError, match="wider box"):
        drawing.box(10, 10, 40, 20, "ours", ["too long for it"])
