"""Benchmark items are found in prompts by the n-grams of their words, and nothing like them is."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from reflash.census.grams import Words, joined
from reflash.census.hashes import RunHasher
from reflash.census.items import KNOWN, Finder, joined_lists, make_items, read_items, write_items
from reflash.census.run import take_census
from reflash.census.spelled import Spelling
from reflash.config.audit import DataAudit
from reflash.errors import ConfigError, SourceError
from tests.census.making import GOOD, PROMPT, jsonl, parquet
from tests.qwen_files import qwen3_tokenizer_folder

APPLES = "Tom buys three apples and eats one. How many apples does he have left, if nobody else takes any of them?"
SHORT = "Reverse the given words, please."
LIST = make_items("Ours", "this test", [APPLES, SHORT, "Too short."])


def held(text: str, least: int = 3) -> list[int]:
    owner, item = Finder(LIST, least).find(RunHasher(), *joined(["something else", text]))
    assert set(owner.tolist()) <= {1}
    return item.tolist()


def test_an_item_is_found_whatever_stands_around_it_and_however_it_is_written() -> None:
    assert held(f"Please answer: {APPLES} Think first.") == [0]
    assert held(APPLES.upper().replace(" ", " \n\t")) == [0]
    assert held(APPLES[:60]) == []
    assert held(APPLES[:60], least=1) == [0]
    assert held("reverse THE given words; please") == [1]
    assert held("reverse the other given words please") == []
    assert held("too short") == []
    assert LIST.benchmarks[0].short == 1


def test_words_do_not_run_from_one_text_into_the_next() -> None:
    half = len(APPLES) // 2
    owner, _ = Finder(LIST, 3).find(RunHasher(), *joined([APPLES[:half], APPLES[half:]]))
    assert owner.tolist() == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("abAB1 .,-é日", max_size=40), min_size=1, max_size=8))
def test_n_grams_are_those_of_the_words(texts: list[str]) -> None:
    words = Words(RunHasher(), *joined(texts))
    told = [re.sub("[ .,-]", " ", text.replace("A", "a").replace("B", "b")).split() for text in texts]
    runs = [(n, pair) for n, line in enumerate(told) for pair in pairwise(line)]
    hashes, owner = words.grams(2)
    assert owner.tolist() == [n for n, _ in runs]
    assert len(set(hashes.tolist())) == len({run for _, run in runs})
    assert words.counts.tolist() == list(map(len, told))


def test_a_list_comes_back_from_its_file_and_takes_others_in(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    other = make_items("Theirs", "elsewhere", ["Which of the seven hills of Rome is the highest one of all?"])
    both = joined_lists([LIST, other])
    write_items(path, both)
    read = read_items(path)
    assert (read.benchmarks, read.lengths, read.size) == (both.benchmarks, (5, 8), 4)
    assert np.array_equal(read.hashes, both.hashes)
    assert np.array_equal(read.items, both.items)
    again = joined_lists([read, make_items("Ours", "anew", [SHORT])])
    assert [(one.name, one.origin) for one in again.benchmarks] == [("Ours", "anew"), ("Theirs", "elsewhere")]
    assert again.size == 2
    with pytest.raises(ConfigError, match="no such list"):
        read_items(tmp_path / "none.parquet")
    with pytest.raises(SourceError, match="is no list of benchmark items"):
        read_items(parquet(tmp_path / "set.parquet", [{"input_ids": [1], "loss_mask": [1]}]))


def test_the_lists_that_come_with_reflash_know_a_famous_item() -> None:
    known = read_items(KNOWN)
    assert {one.name: one.items for one in known.benchmarks} == {
        "HumanEval": 164,
        "GSM8K": 1319,
        "MBPP": 500,
        "MT-Bench": 80,
    }
    asked = (
        'Complete: def has_close_elements(numbers: List[float], threshold: float) -> bool:\n """ Check if in given '
        "list of numbers, are any two numbers closer to each other than given threshold."
    )
    finder = Finder(known, 3)
    _, item = finder.find(RunHasher(), *joined([asked, "Write a function to sort a list of numbers by their size."]))
    assert finder.benchmark(item).tolist() == [0]


def test_items_are_found_in_prompts_of_token_ids(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = qwen3_tokenizer_folder(tmp_path_factory.getbasetemp())
    write_items(tmp_path / "items.parquet", LIST)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def row(asked: str, said: str) -> dict[str, list[int]]:
        prompt, answer = tokenizer.encode(PROMPT.format(asked)).ids, tokenizer.encode(said).ids
        return {"input_ids": prompt + answer, "loss_mask": [0] * len(prompt) + [1] * len(answer)}

    good = GOOD.format(1, 1)
    rows = [row("What is new?", good), row(f"Think: {APPLES}", good), row("Why?", APPLES + good), row(SHORT, good)]
    rules = {"known_items": False, "items": [str(tmp_path / "items.parquet")]}
    audit = DataAudit.model_validate(
        {"path": str(jsonl(tmp_path / "rows.jsonl", rows)), "tokenizer": str(folder), "rules": rules}
    )
    found = take_census(audit)
    assert found.items.tolist() == [2, 4]  # an answer may say what it likes
    (ours,) = found.report.items
    assert (ours.benchmark, ours.met, ours.items, ours.rows, ours.examples) == ("Ours", 2, 3, 2, (2, 4))
    assert found.report.verdict == "mend"
    blind = take_census(audit.model_copy(update={"tokenizer": None})).report
    assert (blind.item_rows, blind.items) == (0, ())
    assert "--tokenizer" in blind.notes[-1]


def test_ids_are_spelled_as_the_tokenizer_decodes_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = qwen3_tokenizer_folder(tmp_path_factory.getbasetemp())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = ["Hello wörld, naïve 日本!", "def f(x):\n\treturn x", "", "🙂🙃 ok"]
    ids = [tokenizer.encode(text).ids for text in texts]
    ends = np.cumsum([len(one) for one in ids])
    text, at = Spelling(tokenizer).bytes(np.array([n for one in ids for n in one], np.int64), ends)
    assert bytes(text).decode() == "".join(f"{one}\n" for one in texts)
    assert at.tolist() == np.cumsum([len(one.encode()) + 1 for one in texts]).tolist()
    odd, _ = Spelling(tokenizer).bytes(np.array([-5, 2**31 - 1, 10**6]), np.array([3]))
    assert bytes(odd) == b"\n\n\n\n"


def test_pieces_with_spaces_of_their_own_are_spelled_too() -> None:
    vocabulary = {"▁Hello": 0, "▁world": 1, "s": 2, "<0x0A>": 3, "▁": 4}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.add_special_tokens(["<end>"])
    text, _ = Spelling(tokenizer).bytes(np.array([0, 1, 2, 3, 4, 5, 2]), np.array([7]))
    assert bytes(text) == b" Hello worlds\n \ns\n"
