"""What lies in a folder beside its data: pipes, devices, links, runs, and names that are not text."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.sources.open import open_source
from tests.sources.reading import good, read_path

ROW = json.dumps(good()) + "\n"


def notes(path: Path) -> str:
    return " | ".join(open_source(SourceConfig(path=str(path))).notes)


def data(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.jsonl").write_text(ROW)
    return folder


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # its name may have 100 characters


@pytest.mark.parametrize(("make", "what"), [(pipe, "a named pipe"), (device, "a device"), (listening, "a socket")])
def test_what_may_never_end_is_passed_over_in_a_folder_and_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object, what: str
) -> None:
    folder = data(tmp_path / "set")
    monkeypatch.chdir(folder)
    make(folder / "z.jsonl")  # type: ignore[operator]
    assert [row.verdict for row in read_path(folder)] == ["accepted"]
    assert f"z.jsonl ({what})" in notes(folder)
    assert f"z.jsonl ({what})" in notes(folder / "*.jsonl")
    with pytest.raises(SourceError, match=rf"z\.jsonl: is {what}, not a regular file"):
        read_path(folder / "z.jsonl")
    with pytest.raises(SourceError, match=rf"z\.jsonl \({what}\) matches this pattern"):
        read_path(folder / "z*")


def test_a_run_inside_a_folder_is_passed_over_and_by_name_its_dataset_is_pointed_to(tmp_path: Path) -> None:
    folder = data(tmp_path / "set")
    run = folder / "runs" / "one"
    for name in ("plan", "parts", "dataset/data"):
        data(run / name)
    (run / "manifest.json").write_text("{}")
    data(folder / "other" / "plan")  # no manifest: no run
    source = open_source(SourceConfig(path=str(folder)))
    assert [Path(file).parent.name for file in source.files] == ["set", "plan"]
    assert "runs/one (a run of Reflash)" in notes(folder)
    with pytest.raises(SourceError, match=r"runs/one: is the folder of a run; its finished rows are in .*dataset"):
        read_path(run)
    assert len(read_path(run / "dataset")) == 1


def test_linked_files_are_read_and_linked_folders_are_named(tmp_path: Path) -> None:
    folder = data(tmp_path / "set")
    elsewhere = data(tmp_path / "elsewhere")
    (folder / "linked.jsonl").symlink_to(elsewhere / "a.jsonl")
    (folder / "up").symlink_to("..")
    assert len(read_path(folder)) == 2
    assert "up (a linked folder)" in notes(folder)


def test_a_link_to_nothing_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = data(tmp_path / "set")
    (folder / "gone.jsonl").symlink_to("nowhere.jsonl")
    (folder / "self.jsonl").symlink_to("self.jsonl")
    with pytest.raises(SourceError, match=r"gone\.jsonl: unreadable"):
        read_path(folder)
    with pytest.raises(SourceError, match=r"gone\.jsonl: unreadable"):
        open_source(SourceConfig(path=str(folder)))
    left = open_source(SourceConfig(path=str(folder)), tolerant=True)
    assert len(left.parts) == 3
    with pytest.raises(SourceError, match=r"gone\.jsonl: unreadable"):
        left.digest()
    with pytest.raises(SourceError, match=r"gone\.jsonl: a link to nowhere\.jsonl, which is not there"):
        read_path(folder / "gone.jsonl")


def test_names_that_are_not_text_are_read_and_shown_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl")).write_text(ROW + "{")
    (folder / "two\nlines\x1b.jsonl").write_text(ROW)
    rows = read_path(folder)
    assert [row.verdict for row in rows] == ["accepted", "rejected", "accepted"]
    shown = {Path(row.origin.file).name for row in rows}
    assert shown == {"caf\ufffd.jsonl", "two lines\ufffd.jsonl"}
    with pytest.raises(SourceError, match="not UTF-8; rename it, or name the folder"):
        read_path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl"))


@pytest.mark.parametrize("name", ["a" * 300, "nul\0byte", "~nobody-of-that-name/x.jsonl", "/dev/null/x"])
def test_a_name_that_no_file_can_have_is_an_error_that_says_so(name: str) -> None:
    with pytest.raises(SourceError, match=r"no such file|too long"):
        read_path(name)


def test_a_name_that_promises_billions_of_shards_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "x-00000-of-99999999999.jsonl").write_text(ROW)
    with pytest.raises(SourceError, match="99,999,999,998 of 99,999,999,999 shards are missing"):
        read_path(tmp_path)
