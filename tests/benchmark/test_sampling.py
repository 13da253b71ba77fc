"""The sample: each stratum in proportion, in one pass, the same for the same seed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from reflash.benchmark.sampling import Sampler, choose, pilot_rows
from reflash.errors import SourceError
from reflash.types import Origin
from tests.making import config, talk


def sampled(wanted: int, shape: dict[str, int], seed: int = 0) -> tuple[Counter[str], dict[str, int], list[str]]:
    sampler = Sampler(wanted, seed)
    for stratum, rows in shape.items():
        for n in range(rows):
            sampler.add(stratum, (Origin("f", n + 1), talk(f"{stratum}-{n}", "q")))
    rows_, strata = sampler.rows()
    return Counter(r.stratum for r in rows_), strata, [r.conversation.id for r in rows_]


def test_each_stratum_gets_its_share() -> None:
    found, strata, _ = sampled(100, {"short": 9000, "long": 1000})
    assert found == {"short": 90, "long": 10}
    assert strata == {"short": 9000, "long": 1000}


def test_strata_too_small_for_a_share_are_one() -> None:
    found, strata, _ = sampled(100, {"most": 9900, "a": 40, "b": 60})
    assert found == {"most": 99, "rare": 1}
    assert strata["rare"] == 100


def test_every_row_of_a_small_set_is_taken() -> None:
    found, _, names = sampled(500, {"a": 30, "b": 20})
    assert found == {"a": 30, "b": 20}
    assert len(set(names)) == 50


def test_the_same_seed_chooses_the_same_and_another_others() -> None:
    first, again, other = (sampled(20, {"a": 20_000}, seed)[2] for seed in (1, 1, 2))
    assert first == again
    assert len(set(first) & set(other)) < 5


def test_late_rows_are_as_likely_as_early_ones() -> None:
    """What is thrown away on the way must not favour either end."""
    _, _, names = sampled(2000, {"a": 40_000})
    late = sum(int(name.split("-")[1]) >= 20_000 for name in names)
    assert 900 < late < 1100


def test_the_real_rows_are_read_with_their_turns_and_lengths(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with path.open("w") as file:
        for n in range(60):
            turns = 1 if n % 3 else 2
            text = "word " * (2 if n % 2 else 200)
            messages = [{"role": r, "content": text} for _ in range(turns) for r in ("user", "assistant")]
            file.write(json.dumps({"id": f"row-{n}", "messages": messages}) + "\n")
        file.write("not JSON\n")
    found = choose(config(tmp_path / "run", source={"path": str(path)}, benchmark={"rows": 12}))
    assert (found.all_rows, found.turns, found.pilot) == (60, 80, 12)
    assert len(found.strata) == 4
    assert {p.conversation.id for p in found.rows} == {f"row-{n}" for n in range(60)}


def test_a_source_without_a_usable_row_fails_by_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(SourceError, match=r"rows\.jsonl"):
        choose(config(tmp_path / "run", source={"path": str(path)}))


@pytest.mark.parametrize(
    ("rows", "width", "wanted"),
    [(100_000, 64, 1000), (500, 16, 100), (50, 16, 50), (5000, 256, 1024), (10**6, 8, 4000)],
)
def test_a_pilot_is_large_enough_and_no_larger(rows: int, width: int, wanted: int) -> None:
    assert pilot_rows(rows, width) == wanted
