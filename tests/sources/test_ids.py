"""Ids that are stable and unique, and the set of hashes behind them."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.sources.ids import Census
from reflash.sources.open import open_source, rows
from reflash.sources.rows import read, settle
from reflash.sources.seen import SeenHashes
from tests.sources.reading import accepted, good, read_bytes, read_values


def ask(text: str, answer: str = "A") -> list[dict[str, str]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]


def ids(folder: Path, *values: Any, census: Census | None = None) -> list[str]:
    return [accepted(row).id for row in read_values(folder, *values, census=census)]


def test_rows_without_an_id_keep_theirs_wherever_they_stand(tmp_path: Path) -> None:
    values = [{"messages": ask(f"Question {n}")} for n in range(20)]
    before = dict(zip(ids(tmp_path, *values), range(20), strict=True))
    after = ids(tmp_path, *reversed(values))
    assert [before[name] for name in after] == list(reversed(range(20)))


def test_the_same_conversation_has_one_id_in_every_shape(tmp_path: Path) -> None:
    shapes = [
        {"messages": ask("Q")},
        {"conversations": [{"from": "human", "value": "Q"}, {"from": "gpt", "value": "A"}]},
        {"prompt": "Q", "response": "A", "source": "x"},
    ]
    names = {ids(tmp_path, shape)[0] for shape in shapes}
    assert len(names) == 1
    assert ids(tmp_path, {"messages": ask("Q", "B")})[0] not in names
    assert ids(tmp_path, {"messages": ask("Q"), "tools": [{"name": "x"}]})[0] not in names


@pytest.mark.parametrize(
    ("given", "name"),
    [(7, "7"), ("u-1", "u-1"), (" x ", "x"), (7.0, "7"), (0, "0"), (2**60, str(2**60)), (1e30, "1e+30")],
)
def test_given_ids_become_text(tmp_path: Path, given: Any, name: str) -> None:
    assert ids(tmp_path, {"id": given, "messages": ask("Q")}) == [name]


@pytest.mark.parametrize("given", [None, "", "  ", True, [1], {"a": 1}])
def test_what_is_no_id_is_replaced_by_a_hash(tmp_path: Path, given: Any) -> None:
    assert ids(tmp_path, {"id": given, "messages": ask("Q")}) == ids(tmp_path, {"messages": ask("Q")})


def test_one_id_for_several_conversations_is_told_apart_and_counted(tmp_path: Path) -> None:
    census = Census()
    values = [{"id": "dup", "messages": ask(text)} for text in ("one", "two", "three")]
    found = read_values(tmp_path, *values, {"id": "solo", "messages": ask("four")}, census=census)
    names = [accepted(row).id for row in found]
    assert names[0] == "dup"
    assert [name.startswith("dup#") for name in names] == [False, True, True, False]
    assert len(set(names)) == 4
    assert (census.duplicate_ids, census.duplicate_prompts) == (2, 0)
    assert [row.id for row in found] == ["dup", "dup", "dup", "solo"]
    assert "duplicate id of 'dup'" in found[1].reason
    assert found[1].verdict == "accepted"


def test_the_name_of_a_second_row_does_not_depend_on_its_place(tmp_path: Path) -> None:
    one, two, three = ({"id": "dup", "messages": ask(text)} for text in ("one", "two", "three"))
    assert ids(tmp_path, one, two, three)[1] == ids(tmp_path, one, three, two)[2]


def test_identical_rows_are_numbered_and_none_is_lost(tmp_path: Path) -> None:
    census = Census()
    assert ids(tmp_path, *[good()] * 5, census=census) == ["a", "a~2", "a~3", "a~4", "a~5"]
    assert (census.duplicate_ids, census.duplicate_prompts) == (4, 4)  # they repeat the id and the question
    names = ids(tmp_path, *[{"messages": ask("Q")}] * 3)
    assert names == [names[0], f"{names[0]}~2", f"{names[0]}~3"]


def test_the_same_question_under_other_ids_is_counted(tmp_path: Path) -> None:
    census = Census()
    values = [{"id": n, "messages": ask("Q", f"answer {n}")} for n in range(3)]
    found = read_values(tmp_path, *values, {"id": "x", "messages": ask("R")}, census=census)
    assert (census.duplicate_ids, census.duplicate_prompts) == (0, 2)
    assert ["duplicate prompt" in row.reason for row in found] == [False, True, True, False]


def test_ids_are_unique_even_against_those_that_reflash_makes(tmp_path: Path) -> None:
    random.seed(3)
    names = ["a", "a~2", "a~3", "b", "a#12345678"]
    values = [good(random.choice(names), f"Q{random.randrange(4)}") for _ in range(700)]
    second = ids(tmp_path, *values[:2])[1]
    found = ids(tmp_path, *values, good(second), good(second))
    assert len(set(found)) == len(found) == 702


def test_a_limit_counts_accepted_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{}\n{"prompt": "a"}\n{"prompt": "b"}\n{"prompt": "c"}\n')
    source = open_source(SourceConfig(path=str(path), limit=2))
    assert [row.verdict for row in rows(source)] == ["rejected", "accepted", "accepted"]
    assert [row.verdict for row in rows(source, limit=1)] == ["rejected", "accepted"]


def test_rows_before_an_unreadable_file_are_not_lost(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "a"}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(b"\x1f\x8b broken")
    found = []
    with pytest.raises(SourceError, match=r"b\.jsonl\.gz"):
        found.extend(row.verdict for row in rows(open_source(SourceConfig(path=str(tmp_path)))))
    stream = rows(open_source(SourceConfig(path=str(tmp_path))))
    assert next(stream).verdict == "accepted"


def test_the_set_of_hashes_knows_what_a_python_set_knows() -> None:
    random.seed(1)
    seen, known = SeenHashes(), set[int]()
    for _ in range(40):
        keys = [random.getrandbits(64) for _ in range(4000)] + [0, 2**64 - 1]
        asked = keys[:50] + list(islice(known, 50))
        assert seen.contains_many(asked) == [key in known for key in asked]
        for key in keys:
            if key not in known:
                known.add(key)
                seen.add(key)
    assert len(seen) == len(known)
    assert all(seen.contains_many(list(islice(known, 10_000))))


def test_the_set_of_hashes_takes_eight_bytes_a_row() -> None:
    seen = SeenHashes()
    for key in np.random.default_rng(0).integers(0, 2**63, 600_000).tolist():
        seen.add(key)
    held = sum(run.nbytes for run in seen._runs)
    assert held <= 8 * 600_000
    assert len(seen._runs) < 8


def test_settling_keeps_rows_in_order(tmp_path: Path) -> None:
    from reflash.sources.ids import Identities
    from reflash.sources.raw import RawRow
    from reflash.types import Origin

    raw = [RawRow(Origin("f", n), good(f"r{n}", f"Q{n}") if n % 3 else {}) for n in range(1, 50)]
    settled = list(settle([read(row) for row in raw], Identities()))
    assert [row.origin.row for row in settled] == list(range(1, 50))
    assert [row.verdict == "rejected" for row in settled] == [n % 3 == 0 for n in range(1, 50)]


def test_an_answer_of_another_row_does_not_change_an_id(tmp_path: Path) -> None:
    alone = read_bytes(tmp_path, b'{"prompt": "Q"}')
    beside = read_bytes(tmp_path, b'{"prompt": "R"}\n{"prompt": "Q"}')
    assert accepted(alone[0]).id == accepted(beside[1]).id
