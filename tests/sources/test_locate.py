"""Folders, splits, shards, patterns, and names on the Hub."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceAbsent, SourceError
from reflash.sources.hub import HubReference, hub_reference
from reflash.sources.open import Source, open_source
from tests.sources.reading import good, read_path


def put(path: Path, *names: str) -> Path:
    """A JSON Lines file with a row for each name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(good(name, f"Question {name}?")) + "\n" for name in names))
    return path


def opened(path: Path | str, **config: str) -> Source:
    return open_source(SourceConfig(path=str(path), **config))


def ids(path: Path | str, **config: str) -> list[str | None]:
    return [row.id for row in read_path(path, **config)]


def test_a_folder_is_read_in_an_order_that_does_not_change(tmp_path: Path) -> None:
    put(tmp_path / "b.jsonl", "3")
    put(tmp_path / "a" / "z.ndjson", "1", "2")
    (tmp_path / "c.json").write_text(json.dumps([good("4", "Four?")]))
    (tmp_path / "README.md").write_text("# Not data")
    (tmp_path / ".hidden.jsonl").write_text("{")
    assert ids(tmp_path) == ["1", "2", "3", "4"]
    source = opened(tmp_path)
    assert [Path(file).name for file in source.files] == ["z.ndjson", "b.jsonl", "c.json"]
    assert any("README.md" in note for note in source.notes)


def test_a_row_says_its_file_and_its_line_in_it(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", "1", "2")
    put(tmp_path / "b.jsonl", "3")
    origins = [(Path(row.origin.file).name, row.origin.row) for row in read_path(tmp_path)]
    assert origins == [("a.jsonl", 1), ("a.jsonl", 2), ("b.jsonl", 1)]


def test_a_pattern_reads_what_it_matches(tmp_path: Path) -> None:
    put(tmp_path / "a-1.jsonl", "1")
    put(tmp_path / "a-2.jsonl", "2")
    put(tmp_path / "b.jsonl", "3")
    assert ids(tmp_path / "a-*.jsonl") == ["1", "2"]
    with pytest.raises(SourceError, match=r"c-\*: no file matches"):
        opened(tmp_path / "c-*")


@pytest.mark.parametrize("name", ["missing.jsonl", "./missing.jsonl", "/no/such/folder/", "missing"])
def test_a_missing_path_is_named_as_it_was_written(name: str) -> None:
    with pytest.raises(SourceError, match="no such file") as caught:
        opened(name)
    assert name in str(caught.value)


def test_a_path_with_nothing_there_says_in_which_folder_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a.jsonl", "1")
    monkeypatch.chdir(tmp_path)
    for name, said in (
        ("missing.jsonl", f"it was looked for in {tmp_path}"),
        ("no/such/missing.jsonl", f"there is no folder {tmp_path}/no"),
        ("a.jsonl/missing.jsonl", f"there is no folder {tmp_path}/a.jsonl"),
        ("missing-*", f"it was looked for from {tmp_path} on"),
    ):
        with pytest.raises(SourceAbsent) as caught:
            opened(name)
        assert str(caught.value).startswith(f"{name}: ")
        assert said in str(caught.value)


def test_a_folder_without_data_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(SourceError, match=r"notes\.txt"):
        opened(tmp_path)


def test_a_file_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("prompt,response\na,b\n")
    with pytest.raises(SourceError, match=r"rows\.csv: unknown format"):
        opened(tmp_path / "rows.csv")


def test_files_named_by_split_are_never_mixed(tmp_path: Path) -> None:
    put(tmp_path / "train.jsonl", "1")
    put(tmp_path / "test.jsonl", "2")
    assert ids(tmp_path) == ["1"]
    assert any("train" in note and "test" in note for note in opened(tmp_path).notes)
    assert ids(tmp_path, split="test") == ["2"]
    with pytest.raises(SourceError, match="dev; its splits: test, train"):
        opened(tmp_path, split="dev")


def test_splits_without_train_must_be_chosen(tmp_path: Path) -> None:
    put(tmp_path / "validation" / "x.jsonl", "1")
    put(tmp_path / "test" / "x.jsonl", "2")
    with pytest.raises(SourceError, match="test, validation"):
        opened(tmp_path)


def test_a_single_file_has_no_splits(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no splits"):
        opened(put(tmp_path / "a.jsonl", "1"), split="train")


def test_a_missing_shard_of_a_numbered_set_is_an_error(tmp_path: Path) -> None:
    for index in (0, 2):
        put(tmp_path / f"train-{index:05}-of-00003.jsonl", str(index))
    with pytest.raises(SourceError, match="train-00001-of-00003"):
        opened(tmp_path)
    assert ids(tmp_path / "*.jsonl") == ["0", "2"]  # a pattern says that these are wanted
    put(tmp_path / "train-00001-of-00003.jsonl", "1")
    assert ids(tmp_path) == ["0", "1", "2"]


def test_the_digest_is_of_content_and_order_alone(tmp_path: Path) -> None:
    put(tmp_path / "one" / "a.jsonl", "1", "2")
    put(tmp_path / "two" / "b.jsonl", "1", "2")
    put(tmp_path / "three" / "a.jsonl", "2", "1")
    one, two, three = (opened(tmp_path / name).digest() for name in ("one", "two", "three"))
    assert one == two
    assert one != three


def test_a_file_inside_a_package_can_be_named() -> None:
    assert len(read_path("pkg://reflash/demo/conversations.jsonl", limit=5)) == 5
    with pytest.raises(SourceError, match="holds no file"):
        opened("pkg://reflash/none.jsonl")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("owner/name", HubReference("owner/name")),
        ("owner/na.me-1_x", HubReference("owner/na.me-1_x")),
        ("hf:owner/name", HubReference("owner/name")),
        ("hf:owner/name:test", HubReference("owner/name", split="test")),
        ("hf://datasets/owner/name/a/b.jsonl", HubReference("owner/name", file="a/b.jsonl")),
        ("hf://datasets/owner/name@v1/a.jsonl", HubReference("owner/name", revision="v1", file="a.jsonl")),
        ("https://huggingface.co/datasets/owner/name", HubReference("owner/name")),
        ("./owner/name", None),
        ("../name", None),
        ("/owner/name", None),
        ("~/name", None),
        ("owner/name/", None),
        ("owner/name/more", None),
        ("data/train.jsonl", None),
        ("data/train.parquet", None),
        ("data/train.jsonl.zst", None),
        ("data/*", None),
        ("name", None),
    ],
)
def test_two_plain_parts_are_a_hub_id_and_everything_else_a_path(name: str, wanted: HubReference | None) -> None:
    found = hub_reference(name)
    assert (found and (found.id, found.split, found.revision, found.file)) == (
        wanted and (wanted.id, wanted.split, wanted.revision, wanted.file)
    )


@pytest.mark.parametrize("name", ["hf:", "hf:owner", "hf://datasets/owner"])
def test_a_malformed_hub_name_says_the_forms(name: str) -> None:
    with pytest.raises(SourceError, match="hf:owner/name:split"):
        opened(name)


@pytest.mark.parametrize("name", ["own/set", "hf:own/set:train", "hf://datasets/own/set/rows.jsonl"])
def test_without_a_network_a_hub_id_fails_at_once_and_never_reads_a_local_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "own" / "set" / "rows.jsonl", "1")
    put(tmp_path / "own" / "set" / "train.jsonl", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(SourceError) as caught:
        opened(name)
    assert time.monotonic() - started < 20
    assert "own/set" in str(caught.value)
    if name == "own/set":
        assert "./own/set" in str(caught.value)
        assert ids("./own/set/rows.jsonl") == ["1"]
