"""What a file is written through: a device stays a device, a link a link, and a file is whole or as it was."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from masis.datasets.writers.files import whole_file


def test_a_link_stays_and_the_file_it_names_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link = folder / "target.jsonl", tmp_path / "link.jsonl"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as stream:
        stream.write(b"new")
        assert target.read_bytes() == b"old"
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [each.name for each in folder.iterdir()] == ["target.jsonl"]


def test_a_link_to_nothing_yet_makes_the_file_it_names(tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "target.jsonl")
    with whole_file(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "target.jsonl").read_bytes() == b"new"


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_pipe_is_written_through_and_stays_a_pipe(tmp_path: Path, through_a_link: bool) -> None:
    pipe = named = tmp_path / "pipe"
    os.mkfifo(pipe)
    if through_a_link:
        named = tmp_path / "link"
        named.symlink_to(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole_file(named) as stream:
        stream.write(b"line\n")
    reader.join(timeout=30)
    assert read == [b"line\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_through_and_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for path in (Path("/dev/null"), link):
        with whole_file(path) as stream:
            stream.write(b"gone")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_failure_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(OSError, match="broken"):
        _fail_halfway(file)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def _fail_halfway(file: Path) -> None:
    with whole_file(file) as stream:
        stream.write(b"half")
        raise OSError("broken")
