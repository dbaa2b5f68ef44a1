"""Growth of memory, threads and descriptors: what counts as growth, and the verdict."""

import os

from tests.faults.cluster.resources import Sampler, grown, growth


def rows(value):
    return [
        {"seconds": second, "process": "workload", "rss_mib": value(second), "threads": 9, "descriptors": 20}
        for second in range(0, 400, 5)
    ]


def test_what_levels_off_after_the_first_quarter_is_flat():
    warm = rows(lambda second: min(second, 100) + 100)
    assert growth(warm)["workload"]["rss_mib"] == (200, 200)
    assert grown(warm) == []


def test_lasting_growth_is_reported():
    assert grown(rows(lambda second: 100 + second)) == ["rss_mib of workload grew from 247.5 to 447.5"]


def test_the_verdict_has_the_samples_of_running_processes(tmp_path):
    sampler = Sampler({"me": os.getsid(0)})
    verdict = sampler.verdict(tmp_path)
    assert (verdict.measures, verdict.failures) == ({}, [])
    assert (tmp_path / "resources.csv").read_text().strip() == "seconds,process,rss_mib,threads,descriptors"
