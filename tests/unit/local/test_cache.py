"""Where the cache is."""

import os
import pwd
from pathlib import Path

import pytest

from pravega_connector.local.jars import cache_dir

HOME = pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PRAVEGA_SERDE_CACHE": "/a/b", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/pravega-serde"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/pravega-serde"),
        ({"HOME": "/h"}, "/h/.cache/pravega-serde"),
        ({"PRAVEGA_SERDE_CACHE": "", "XDG_CACHE_HOME": "", "HOME": ""}, f"{HOME}/.cache/pravega-serde"),
        ({}, f"{HOME}/.cache/pravega-serde"),
    ],
)
def test_the_first_that_is_set_decides(monkeypatch, environment, expected):
    for name in ("PRAVEGA_SERDE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == Path(expected)
