"""Every good row of a run, in the shape that a trainer reads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from flows.validating import validate_run
from reflash.errors import ConfigError, RunIncomplete, StoreError
from reflash.export.formats import FORMATS
from reflash.export.run import export_run
from reflash.ledger import names
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.schema import to_parquet
from reflash.sources.locate import part_of
from tests.flows.made import MODEL, made_run, settings
from tests.making import begun, config

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TALKS = [
    {"id": "one", "messages": [{"role": "user", "content": "line\u2028separator é"}]},
    {
        "id": "tools",
        "tools": [TOOL],
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ],
    },
    {"id": "two", "messages": [{"role": "user", "content": c} for c in "ab"]},
]
TALKS[2]["messages"].insert(1, {"role": "assistant", "content": "OK."})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "rows.jsonl").write_text("".join(json.dumps(talk) + "\n" for talk in TALKS))
    source = {"path": str(folder / "rows.jsonl")}
    made_run(config(folder / "run", source=source, model=MODEL, plan={"shard_rows": 2, "workers": 1}))
    return folder / "run"


def exported(run: Path, form: str, out: Path) -> list[dict[str, Any]]:
    made = export_run(str(run), form, out / "out.jsonl")
    lines = (out / "out.jsonl").read_bytes().split(b"\n")
    rows = [json.loads(line) for line in lines[:-1]]
    assert (lines[-1], made.rows, made.unpublished, len(rows)) == (b"", 4, 0, 4)
    assert not list(out.glob("*.part"))
    return rows


def dataset(run: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ds.dataset(run / "dataset" / "data").to_table().to_pylist()
    return rows


@pytest.mark.parametrize("form", ["specforge", "speculators"])
def test_token_rows_are_what_was_emitted_and_no_more(run: Path, tmp_path: Path, form: str) -> None:
    keys = ("input_ids", "loss_mask")
    rows = exported(run, form, tmp_path)
    assert export_run(str(run), form, tmp_path / "again").longest == max(len(row["input_ids"]) for row in rows)
    assert rows == [{key: row[key] for key in keys} for row in dataset(run)]
    for row, whole in zip(rows, dataset(run), strict=True):
        assert sum(row["loss_mask"]) == whole["completion_tokens"]  # no line feed behind the end mark


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ("specforge-conversations", "conversations"),
        ("deepspec", "conversations"),
        ("automodel", "messages"),
        ("messages", "messages"),
    ],
)
def test_conversations_keep_calls_and_tools_and_have_no_empty_keys(
    run: Path, tmp_path: Path, form: str, key: str
) -> None:
    rows = {row["id"]: row for row in exported(run, form, tmp_path)}
    assert rows.keys() == {"one", "tools", "two/0", "two/1"}
    asked, called, found, answer = rows["tools"][key]
    assert (asked["content"], called["tool_calls"][0]["function"], found) == (
        "look",
        {"name": "look", "arguments": "{}"},
        {"role": "tool", "content": "found", "tool_call_id": "c1", "name": "look"},
    )
    assert (answer["role"], bool(answer["content"])) == ("assistant", True)
    if form != "deepspec":  # which has no key for them
        assert json.loads(rows["tools"]["tools"])[0]["function"]["name"] == "look"
    assert not any(value in (None, []) for row in rows.values() for message in row[key] for value in message.values())
    assert (tmp_path / "out.jsonl").read_bytes().isascii()
    assert ("status" in rows["one"]) == (form in ("specforge-conversations", "deepspec"))


def test_deepspec_has_the_thinking_under_its_own_key_and_under_the_template_s() -> None:
    message = {"role": "assistant", "content": "Paris.", "reasoning_content": "France.", "tool_calls": [], "name": None}
    line = FORMATS["deepspec"].line({"id": "a", "messages": [{"role": "user", "content": "Where?"}, message]})
    assert json.loads(line) == {
        "id": "a",
        "status": "success",
        "conversations": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": "Paris.", "reasoning_content": "France.", "thinking": "France."},
        ],
    }


def test_what_was_exported_is_read_back_as_the_same_conversations(run: Path, tmp_path: Path) -> None:
    exported(run, "messages", tmp_path)
    read = [row.value["messages"] for row in part_of(tmp_path / "out.jsonl").records()]
    assert [talk[-1]["content"] for talk in read] == [row["messages"][-1]["content"] for row in dataset(run)]


def test_it_lies_beside_the_dataset_and_says_what_is_missing(tmp_path: Path) -> None:
    made_run(settings(tmp_path, 5), shards_wanted=2)
    said = reflash("export", str(tmp_path / "run"), "--format", "specforge")
    assert "4 rows are in" in said
    assert "not in the dataset yet: 1" in said
    assert len((tmp_path / "run" / "export" / "specforge.jsonl").read_text().splitlines()) == 4


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    begun(tmp_path / "run")
    with pytest.raises(RunIncomplete, match="no row yet"):
        export_run(str(tmp_path / "run"), "specforge")
    with pytest.raises(ConfigError, match="there are specforge, specforge-conversations"):
        export_run(str(tmp_path / "run"), "deepspec2")
    assert all(form.note for form in FORMATS.values())


def cut(ledger: Ledger, name: str, edit: Callable[[pa.Table], pa.Table], *, told: bool) -> None:
    """A table with other rows and the same metadata; without `told` as the first versions wrote it."""
    table = ledger.dataset_rows(name)
    facts = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    kept = facts if told else {"run": facts["run"]}
    ledger.store.put(name, to_parquet(edit(table), **kept))


EDITS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "fewer": lambda table: table.slice(0, 1),
    "doubled": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "one twice, one not": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(0, 1)]),
    "none": lambda table: table.slice(0, 0),
}


@pytest.mark.parametrize("told", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("verdicts", [True, False])
@pytest.mark.parametrize("edit", EDITS)
def test_a_dataset_file_of_other_rows_is_refused_and_validating_writes_it_anew(
    made: Ledger, tmp_path: Path, edit: str, told: bool, verdicts: bool
) -> None:
    ledger = copied(made, tmp_path)
    name = names.dataset("00000")
    cut(ledger, name, EDITS[edit], told=told)
    if not verdicts:
        if not told and edit == "one twice, one not":
            pytest.skip("nothing knows better")
        ledger.store.delete([names.verdicts("00000")])
    with pytest.raises(StoreError, match="`reflash validate") as error:
        export_run(ledger.where, "specforge")
    if told or verdicts:
        assert name in str(error.value)
    if edit == "fewer":
        mended(ledger, str(error.value), 5)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", ["dataset/data/train-00001.parquet", "dataset/data/train-00077.parquet"])
def test_a_copy_of_another_dataset_file_is_refused(made: Ledger, tmp_path: Path, name: str, told: bool) -> None:
    ledger = copied(made, tmp_path)
    cut(ledger, names.dataset("00000"), lambda table: table, told=told)
    ledger.store.put(name, ledger.store.get(names.dataset("00000")) or b"")
    with pytest.raises(StoreError, match=name) as error:
        export_run(ledger.where, "messages")
    mended(ledger, str(error.value), 5)


def test_a_dataset_file_that_is_gone_from_a_whole_run_is_missed(made: Ledger, tmp_path: Path) -> None:
    ledger = copied(made, tmp_path)
    ledger.store.delete([names.dataset("00001")])
    with pytest.raises(StoreError, match=r"train-00001\.parquet is missing") as error:
        export_run(ledger.where, "messages")
    mended(ledger, str(error.value), 5)


@pytest.mark.parametrize("name", ["plan/index.json", "plan/00001.parquet", "parts/00002.parquet"])
def test_a_folder_that_lost_files_behind_a_whole_dataset_is_a_warning(made: Ledger, tmp_path: Path, name: str) -> None:
    ledger = copied(made, tmp_path)
    ledger.store.delete([name])
    assert export_run(ledger.where, "messages").lacking == (name,)
    said = reflash("export", ledger.where, "--format", "messages")
    assert "5 rows are in" in said
    assert f"warning: these rows are whole, but the run's folder is not: {name} missing" in said


def test_a_torn_part_behind_a_whole_dataset_is_a_warning(made: Ledger, tmp_path: Path) -> None:
    ledger = copied(made, tmp_path)
    ledger.store.put(names.part("00001"), b"PAR1 half a fi")
    assert export_run(ledger.where, "messages").lacking == (names.part("00001"),)
    assert export_run(made.where, "messages").lacking == ()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return made_run(settings(tmp_path_factory.mktemp("whole")))


def copied(ledger: Ledger, to: Path) -> Ledger:
    """The run's folder elsewhere, as `cp -r` leaves it."""
    shutil.copytree(ledger.where, to / "run")
    return open_ledger(str(to / "run"))


def mended(ledger: Ledger, said: str, rows: int) -> None:
    """What the error says, done; then all rows are exported, and nothing is left of the attempt before."""
    assert not list((ledger.store.root or Path()).glob("export/*.jsonl*"))
    if "delete it" in said:
        ledger.store.delete([said.split(" ", 1)[0].removeprefix(f"{ledger.where}/")])
    if "reflash validate" in said:
        validate_run(ledger.where)
    assert export_run(ledger.where, "specforge").rows == rows


def reflash(*arguments: str) -> str:
    command = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"
    return subprocess.run(
        [sys.executable, "-c", command, *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    made_run(settings(tmp_path, 5))
    last = sorted((tmp_path / "run" / "dataset" / "data").glob("*.parquet"))[-1]
    last.write_bytes(last.read_bytes()[:-20])
    with pytest.raises(StoreError):
        export_run(str(tmp_path / "run"), "messages")
    assert list((tmp_path / "run" / "export").iterdir()) == []
