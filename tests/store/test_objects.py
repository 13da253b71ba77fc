"""Where a run may lie, and what is said of where it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.errors import AlreadyExists, ConfigError, StoreError
from reflash.store.objects import open_store

UNFIT = [
    "runs/a\x00b",
    "runs/" + "x" * 300,
    "x" * 5000,
    "http://example.org/runs",
    "https://example.org/runs",
    "memory:///runs",
    "ftp://example.org/runs",
    "s3://",
    "nowhere://x",
    "file://runs/one",
    "~nobody-of-that-name/runs",
    "runs/\ud800",
]


@pytest.mark.parametrize("name", UNFIT)
def test_a_place_where_no_run_can_lie_is_a_config_error_with_a_remedy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        open_store(name, create=True)
    said = str(caught.value)
    assert said.isprintable()  # one line, which any terminal may show
    assert len(said) < 1500
    assert "Give a folder" in said or "as in file:///" in said


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        open_store("ftp://user:hunter2@example.org/runs", create=True)
    assert "hunter2" not in str(caught.value)
    assert "example.org/runs" in str(caught.value)


def test_a_folder_that_is_not_there_is_made_only_when_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        open_store(str(tmp_path / "new"))
    open_store(str(tmp_path / "new"), create=True)
    assert (tmp_path / "new").is_dir()


def test_a_folder_under_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((ConfigError, StoreError), match=r"file/run.*folder"):
        open_store(str(tmp_path / "file" / "run"), create=True)


@pytest.mark.parametrize("name", ["run [b] é *?", "run#1", "run_%20b", "a b", "-x", "'x'"])
def test_a_folder_of_any_other_name_keeps_its_objects(tmp_path: Path, name: str) -> None:
    store = open_store(str(tmp_path / name), create=True)
    store.put_new("parts/00000.parquet", b"once")
    with pytest.raises(AlreadyExists):
        store.put_new("parts/00000.parquet", b"twice")
    assert (tmp_path / name / "parts" / "00000.parquet").read_bytes() == b"once"
    assert [(o.name, o.size) for o in store.under("parts")] == [("parts/00000.parquet", 4)]
    assert store.tail("parts/00000.parquet", 2) == b"ce"
    store.delete(["parts/00000.parquet", "parts/never.parquet"])
    assert store.get("parts/00000.parquet") is None


def test_a_whole_path_after_file_is_the_same_folder(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}/run", create=True).put("a", b"1")
    assert open_store(str(tmp_path / "run")).get("a") == b"1"
