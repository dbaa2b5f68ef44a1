"""What ``python -m benchmarks.scale curves`` says of its numbers."""

import pytest

from benchmarks.scale._curves import Curve, Point, growth


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, 10.0, 100.0], "linear"),
        ([1.0, 2.0, 11.0], "less than linear"),
        ([1.0, 1.1, 1.2], "constant"),
        ([1.0, 2.0, 40.0], "NOT LINEAR"),
        ([1.0, 5.0, 56.0], "linear"),
        ([3.0, 1.0, 1.2], "constant"),
    ],
)
def test_growth_is_told_from_the_last_step(values, said):
    assert growth([10, 100, 1000], values).startswith(f"{said} (the last step is 10 × the size and ")


def test_a_single_point_says_nothing():
    assert growth([10], [1.0]) == "one point says nothing"


def test_a_curve_tells_its_points_and_how_they_grow():
    points = tuple(Point(n, n, 100 * n, 0.1, 0.2, 1e-6 * n, 2e-6 * n, 5e-7 * n, 120.0) for n in (1_000_000, 10_000_000))
    curve = Curve("events", "Events", "events", points)
    rows = str(curve).splitlines()
    assert rows[3].split() == ["10,000,000", "0.10", "0.20", "10.00", "1.00", "2.00", "0.50", "100", "120"]
    assert curve.verdicts() | {"read": "", "spark_cpu": ""} == {
        "plan": "constant (the last step is 10 × the size and 1.00 × the value)",
        "read": "",
        "spark_cpu": "",
        "task_mib": "constant (the last step is 10 × the size and 1.00 × the value)",
    }
    assert curve.verdicts()["read"].startswith("linear")
    assert curve.to_json()["points"][1]["bytes"] == 1_000_000_000
