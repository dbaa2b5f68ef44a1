"""What is called flat, and the picture of it."""

import xml.etree.ElementTree as ET

from tools.faults.cluster._soak import draw, grown, growth


def rows(value):
    return [
        {"seconds": second, "process": "workload", "rss_mib": value(second), "threads": 9, "descriptors": 20}
        for second in range(0, 400, 5)
    ]


def test_what_levels_off_after_the_first_quarter_is_flat():
    warm = rows(lambda second: min(second, 100) + 100)
    assert growth(warm)["workload"]["rss_mib"] == (200, 200)
    assert grown(warm) == []


def test_what_goes_on_growing_is_told():
    assert grown(rows(lambda second: 100 + second)) == ["rss_mib of workload grew from 247.5 to 447.5"]


def test_the_picture_has_a_line_for_each_unit(tmp_path):
    draw(rows(lambda second: second), tmp_path / "picture.svg")
    lines = ET.parse(tmp_path / "picture.svg").getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [80, 80, 80]
