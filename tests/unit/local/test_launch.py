"""Start of a server in its own folder."""

import shutil
import tempfile

import pytest

from pravega_connector.errors import LocalServerError
from pravega_connector.local.launch import start_in_folder


def test_a_disk_with_too_little_space_is_an_error_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100 << 30, 99 << 30, 40 << 20))
    with pytest.raises(LocalServerError, match=f"{tmp_path} has 40 MiB left: free some, or set TMPDIR"):
        start_in_folder("pravega-", lambda folder: pytest.fail("a command is prepared"))
    assert not list(tmp_path.iterdir())
