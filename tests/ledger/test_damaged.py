"""Files of a run that somebody edited, cut or brought from another version: named, or made again, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from reflash.errors import ReflashError, StoreError
from reflash.ledger.ledger import Ledger
from reflash.ledger.schema import JUDGEMENT, PLANNED, TURN, from_parquet, to_parquet
from reflash.report.attempt import attempts_in
from reflash.report.status import run_status
from reflash.types import Judgement, Shard
from reflash.validate.run import settings_of
from tests.making import begun, rows, turn

JUDGED = [Judgement(f"row-{n:04}", 0, "good") for n in range(3)]
RULES = '{"reflash": "1", "validation": {"loop_window": 32}}'
PART, PLAN, VERDICTS = "parts/00000.parquet", "plan/00000.parquet", "verdicts/00000.parquet"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """One shard of three rows, planned, generated and judged."""
    ledger = begun(tmp_path / "run")
    plan = rows(3)
    ledger.write_shard("00000", plan)
    ledger.finish_plan([Shard("00000", 3, 3)], {"rows": 3})
    ledger.write_segment("00000", "w", 0, [turn(p.conversation.id) for p in plan])
    ledger.commit("00000", {p.conversation.id: 1 for p in plan})
    ledger.write_verdicts("00000", JUDGED, RULES)
    return ledger


def edited(ledger: Ledger, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file; where `edit` gives something, that is the file."""
    data = ledger.store.get(name)
    assert data is not None
    body = orjson.loads(data)
    given = edit(body)
    ledger.store.put(name, orjson.dumps(body if given is None else given))


def rewritten(ledger: Ledger, name: str, edit: Callable[[pa.Table], pa.Table], **facts: str) -> None:
    """Change a table and keep its metadata."""
    data = ledger.store.get(name)
    assert data is not None
    table = from_parquet(data, name)
    kept = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    ledger.store.put(name, to_parquet(edit(table), **(kept | facts)))


def without(column: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([column])


def put_column(column: str, values: pa.Array) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(column), column, values)


def fault(read: Callable[[], object]) -> str:
    """What the error says, "" where there is none."""
    try:
        read()
    except ReflashError as error:
        return str(error)
    return ""


INDEXES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list": lambda index: [1],
    "null": lambda index: "null",
    "no source": lambda index: index.pop("source") and None,
    "a source that is a list": lambda index: index.update(source=[1]),
    "a count that is text": lambda index: index.update(source={"rows": "3"}),
    "no shards": lambda index: index.pop("shards") and None,
    "shards that are names": lambda index: index.update(shards=["00000"]),
    "rows that are text": lambda index: index["shards"][0].update(rows="x"),
    "turns that are less than none": lambda index: index["shards"][0].update(turns=-1),
    "turns that are true": lambda index: index["shards"][0].update(turns=True),
    "a name that leads elsewhere": lambda index: index["shards"][0].update(name="../../x"),
    "a name that is a number": lambda index: index["shards"][0].update(name=0),
    "an empty name": lambda index: index["shards"][0].update(name=""),
    "a shard twice": lambda index: index["shards"].append(index["shards"][0]),
    "no run": lambda index: index.pop("run") and None,
}


@pytest.mark.parametrize("what", INDEXES)
def test_an_index_with_a_wrong_value_is_named_with_the_remedy(ledger: Ledger, what: str) -> None:
    edited(ledger, "plan/index.json", INDEXES[what])
    for read in (ledger.shards, ledger.source_counts, lambda: run_status(str(ledger.store.root))):
        with pytest.raises(StoreError, match=r"plan/index\.json .*(delete)"):
            read()


MANIFESTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no config": lambda m: m.update(recorded={}),
    "a config that is text": lambda m: m.update(recorded={"config": "x"}),
    "a config without a source": lambda m: m.update(recorded={"config": {"source": "x"}}),
    "no source": lambda m: m["decides"].pop("source") and None,
    "a source that is text": lambda m: m["decides"].update(source="x"),
    "no model": lambda m: m["decides"].pop("model") and None,
    "a format that is text": lambda m: m.update(format="x"),
    "a list": lambda m: [m],
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_manifest_that_lacks_what_is_read_of_it_is_named(ledger: Ledger, what: str) -> None:
    edited(ledger, "manifest.json", MANIFESTS[what])
    with pytest.raises(StoreError, match=r"manifest\.json"):
        run_status(str(ledger.store.root))


@pytest.mark.parametrize("report", [b"[1]", b"null", b"", b"{}", b'{"total": 1}', b'{"complete": "yes"}', b"{"])
def test_a_damaged_report_is_no_report_and_stops_nothing(ledger: Ledger, report: bytes) -> None:
    ledger.store.put("report.json", report)
    assert not run_status(str(ledger.store.root))["complete"]
    assert attempts_in(ledger.report()) == ()


@pytest.mark.parametrize(
    "attempts", [3, "x", [3], [{}], [{"turns": "x", "output_tokens": 1, "seconds": 1, "engines": []}], {"turns": 1}]
)
def test_attempts_that_cannot_be_read_are_none(attempts: object) -> None:
    assert attempts_in({"attempts": attempts}) == ()
    assert attempts_in({"attempt": attempts}) == ()


@pytest.mark.parametrize("column", TURN.names)
def test_a_part_that_lacks_a_column_is_named_with_the_remedy(ledger: Ledger, column: str) -> None:
    rewritten(ledger, PART, without(column))
    for read in (ledger.part, ledger.part_table):
        with pytest.raises(StoreError, match=rf"parts/00000\.parquet lacks the column {column}.*delete it"):
            read("00000")


@pytest.mark.parametrize("column", PLANNED.names)
def test_a_plan_that_lacks_a_column_is_named_with_the_remedy(ledger: Ledger, column: str) -> None:
    rewritten(ledger, PLAN, without(column))
    with pytest.raises(StoreError, match=rf"plan/00000\.parquet lacks the column {column}.*plan is made again"):
        ledger.planned("00000")


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        (PLAN, "messages", pa.array(["{", "[]", "[]"])),
        (PLAN, "messages", pa.array(["[3]", "[]", "[]"])),
        (PLAN, "messages", pa.array(['[{"role": "user"}]', "[]", "[]"])),
        (PLAN, "row", pa.array(["1", "2", "3"])),
        (PART, "tool_calls", pa.array(["{", "", ""])),
        (PART, "tool_calls", pa.array(['[{"id": 1}]', "", ""])),
        (PART, "output_ids", pa.nulls(3, TURN.field("output_ids").type)),
        (PART, "conversation", pa.nulls(3, pa.string())),
        (PART, "turn", pa.array(["0", "0", "0"])),
    ],
)
def test_a_column_of_other_values_is_named(ledger: Ledger, name: str, column: str, values: pa.Array) -> None:
    rewritten(ledger, name, put_column(column, values))
    with pytest.raises(StoreError, match=name):
        ledger.planned("00000") if name == PLAN else ledger.part("00000")


def test_a_segment_that_lacks_a_column_is_generated_again(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run")
    ledger.write_segment("00000", "w", 0, [turn("a")])
    ledger.write_segment("00000", "w", 1, [turn("b")])
    rewritten(ledger, "segments/00000/w-000000.parquet", without("samples"))
    assert ledger.finished_conversations("00000") == {"b"}


@pytest.mark.parametrize("rules", ["nonsense", "[]", "", "3"])
def test_verdicts_of_unreadable_rules_are_made_again(ledger: Ledger, rules: str) -> None:
    assert ledger.rules() == RULES
    rewritten(ledger, VERDICTS, lambda table: table, rules=rules)
    assert ledger.rules() is None
    assert ledger.verdicts("00000", RULES) is None


def test_rules_without_settings_mean_the_default_ones() -> None:
    assert settings_of(RULES) == {"loop_window": 32}
    assert settings_of("{}") == settings_of('{"validation": 3}') == {}


@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.slice(0, 2),
        lambda table: pa.concat_tables([table.slice(0, 2), table.slice(0, 1)]),
        lambda table: table.slice(0, 0),
        *map(without, JUDGEMENT.names),
        put_column("verdict", pa.nulls(3, pa.string())),
        put_column("conversation", pa.array(["x", "y", "z"])),
    ],
)
def test_verdicts_that_lost_rows_or_columns_count_as_absent(
    ledger: Ledger, edit: Callable[[pa.Table], pa.Table]
) -> None:
    assert ledger.verdicts("00000", RULES) == JUDGED
    rewritten(ledger, VERDICTS, edit)
    assert ledger.verdicts("00000", RULES) is None
    assert ledger.verdicts("00000") is None
    ledger.write_verdicts("00000", JUDGED, RULES)
    assert ledger.verdicts("00000", RULES) == JUDGED


def test_whatever_stands_in_a_file_of_a_run_is_no_traceback(ledger: Ledger) -> None:
    reads: dict[str, Callable[[], object]] = {
        "plan/index.json": ledger.shards,
        "manifest.json": ledger.manifest,
        "report.json": ledger.report,
        PLAN: lambda: ledger.planned("00000"),
        PART: lambda: ledger.part("00000"),
        VERDICTS: lambda: ledger.verdicts("00000"),
    }
    for name, read in reads.items():
        whole = ledger.store.get(name) or b"{}"
        for data in (b"", b"\x00", b"PAR1PAR1", b'{"run": {}}', b"[[1, 2]]", whole[: len(whole) // 2]):
            ledger.store.put(name, data)
            said = fault(read)
            assert name in said or (not said and name in (VERDICTS, "report.json"))
        ledger.store.put(name, whole)
