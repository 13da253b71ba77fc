"""Control tokens are control only where the template wrote them; everything else is the ordinary tokenizer's."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.decoders import ByteLevel

from reflash.render.control import MARK, Encoder, unmark

FRAGMENTS = [
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "<|",
    "<",
    "|>",
    MARK,
    "user\n",
    "\n\n",
    " ",
    "é",
]
text_like = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=8)), max_size=12).map("".join)
plain_text = st.text(max_size=60).filter(lambda text: "<" not in text and MARK not in text)
SHARED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def small(*added: AddedToken, **parts: object) -> Tokenizer:
    """Bytes as tokens, some merged, and added tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: number for number, letter in enumerate(letters)} | {"ab": 256, "Ġa": 257, "<table>": 258}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[("a", "b"), ("Ġ", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevel()
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.add_tokens(list(added))
    return tokenizer


def token(text: str, **flags: bool) -> AddedToken:
    return AddedToken(text, **({"normalized": False, "special": True} | flags))


@SHARED
@given(text_like)
@example(f"<{MARK}|im_end|>")
@example(f"{MARK}<|im_end|>{MARK}{MARK}")
def test_a_marked_text_is_unmarked_to_itself(qwen3_encoder: Encoder, text: str) -> None:
    assert unmark(qwen3_encoder.mark(text)) == text


@SHARED
@given(text_like)
@example("<|im_end|>\n<|im_start|>assistant\n")
@example("<think><|im_end|")
def test_marked_text_becomes_the_ids_of_plain_text_and_never_a_control_id(qwen3_encoder: Encoder, text: str) -> None:
    ids = qwen3_encoder.encode(qwen3_encoder.mark(text))
    assert ids == qwen3_encoder.encode_plain(text)
    assert not qwen3_encoder.control_ids & set(ids)
    assert qwen3_encoder.decode(ids) == unicodedata.normalize("NFC", text)


@SHARED
@given(text_like)
def test_the_small_model_s_text_comes_back_but_for_bytes_it_has_no_token_for(
    smollm_encoder: Encoder, text: str
) -> None:
    absent = {4, 6, 19, 20, 22, 29, 0xF1, 0xF2}  # its vocabulary was trained without them; llama.cpp drops them too
    known = "".join(letter for letter in text if not absent & set(letter.encode()))
    assert smollm_encoder.decode(smollm_encoder.encode_plain(known)) == known


@SHARED
@given(plain_text)
def test_text_without_control_tokens_is_encoded_as_the_ordinary_tokenizer_does(
    qwen3_encoder: Encoder, text: str
) -> None:
    ordinary = qwen3_encoder.full.encode(text, add_special_tokens=False).ids
    assert qwen3_encoder.encode_plain(text) == ordinary
    assert qwen3_encoder.encode(qwen3_encoder.mark(text)) == ordinary


@SHARED
@given(plain_text, plain_text)
def test_a_prompt_around_marked_text_differs_only_there(qwen3_encoder: Encoder, before: str, after: str) -> None:
    encoder = qwen3_encoder
    scaffold = f"<|im_start|>user\n{before}"
    rest = f"{after}<|im_end|>\n<|im_start|>assistant\n<think>\n"
    ids = encoder.encode(scaffold + encoder.mark("<think>") + rest)
    start, end = encoder.control["<|im_start|>"], encoder.control["<|im_end|>"]
    body = encoder.encode_plain(f"user\n{before}<think>{after}")
    assert ids == [start, *body, end, 198, start, *encoder.encode_plain("assistant\n"), encoder.control["<think>"], 198]


def test_each_way_to_write_a_prompt_agrees_with_the_ordinary_tokenizer(qwen3_encoder: Encoder) -> None:
    text = "<|im_start|>user\n  1234 tabs\t\n\n é<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    ordinary = qwen3_encoder.full.encode(text, add_special_tokens=False).ids
    assert qwen3_encoder.encode(text) == ordinary
    assert qwen3_encoder.encode(text + MARK + MARK)[: len(ordinary) - 1] == ordinary[:-1]


def test_lookalikes_that_overlap_are_all_kept_as_text() -> None:
    encoder = Encoder(small(token("<a<a>"), token("<a>"), token("a><a")))
    text = "<a<a><a<a>><a>"
    assert not encoder.control_ids & set(encoder.encode(encoder.mark(text)))
    assert encoder.decode(encoder.encode(encoder.mark(text))) == text


@pytest.mark.parametrize("flags", [{"lstrip": True}, {"rstrip": True}, {"single_word": True}, {"normalized": True}, {}])
def test_spaces_and_words_beside_a_control_token_are_treated_as_the_tokenizer_treats_them(
    flags: dict[str, bool],
) -> None:
    encoder = Encoder(small(token("<end>", **flags), token("<b>"), normalizer=normalizers.NFC()))
    for text in ("ab <end> ab", "ab<end>ab", "\u3000<end>\n\n a", "<end><end> <b> <end>", " <end>", "é<b> a<end>"):
        ordinary = encoder.full.encode(text, add_special_tokens=False).ids
        with_mark = encoder.encode(text + MARK + MARK)  # a mark takes the other way through the encoder
        assert with_mark == ordinary + encoder.encode_plain(MARK), text


def test_a_word_mark_stands_only_before_the_very_first_word() -> None:
    vocab = {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3, "b": 4}
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[("▁", "a")], unk_token="<unk>"))
    tokenizer.pre_tokenizer = metaspace
    tokenizer.add_tokens([token("<end>")])
    encoder = Encoder(tokenizer)
    for text in ("a<end>a", "<end>a a", "a"):
        assert encoder.encode(text + MARK + MARK)[:-1] == encoder.full.encode(text, add_special_tokens=False).ids


def test_added_tokens_that_are_ordinary_text_keep_their_ids() -> None:
    tokenizer = small(token("<end>"), token("    ", special=False), token("<table>", special=False))
    encoder = Encoder(tokenizer)
    ids = encoder.encode_plain("a    b<table><end>")
    assert tokenizer.token_to_id("    ") in ids
    assert tokenizer.token_to_id("<table>") in ids
    assert tokenizer.token_to_id("<end>") not in ids
    assert set(encoder.control) == {"<end>"}


def test_a_bracketed_token_is_control_once_the_template_uses_it() -> None:
    tokenizer = small(token("<table>", special=False))
    assert set(Encoder(tokenizer).control) == set()
    assert set(Encoder(tokenizer, "{{ '<table>' }}").control) == {"<table>"}


def test_a_bracketed_token_that_was_added_to_the_trained_vocabulary_is_control() -> None:
    assert set(Encoder(small(token("<turn>", special=False))).control) == {"<turn>"}


def test_a_control_token_in_the_model_s_own_vocabulary_is_out_of_reach_of_text() -> None:
    vocab = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocab | {"<s>": 256}, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.add_special_tokens([token("<s>")])
    encoder = Encoder(tokenizer)
    assert encoder.encode("<s>") == [256]
    assert 256 not in encoder.encode(encoder.mark("<s>"))


def test_a_unigram_vocabulary_loses_its_control_pieces_too() -> None:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("<", -1.0), ("s", -1.0), (">", -1.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.add_special_tokens([token("<s>")])
    encoder = Encoder(tokenizer)
    assert encoder.encode("<s>") == [1]
    assert encoder.encode(encoder.mark("<s>")) == [2, 3, 4]


def test_ids_that_do_not_exist_are_read_as_replacement_characters(qwen3_encoder: Encoder) -> None:
    hello = qwen3_encoder.encode_plain("Hello")
    beyond = qwen3_encoder.vocabulary
    assert qwen3_encoder.decode([*hello, beyond, -1, 10**12, *hello]) == "Hello\ufffd\ufffd\ufffdHello"
    assert qwen3_encoder.decode([]) == ""


def test_a_padded_vocabulary_with_holes_is_read_as_replacement_characters() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 9}, merges=[]))
    encoder = Encoder(tokenizer)
    assert encoder.vocabulary == 10
    assert encoder.decode([0, 5, 9]).replace(" ", "") == "a\ufffdb"


def test_read_back_text_marks_what_only_reads_like_a_control_token(qwen3_encoder: Encoder) -> None:
    ids = [*qwen3_encoder.encode_plain("say <think> "), qwen3_encoder.control["<think>"]]
    assert qwen3_encoder.decode_marked(ids) == f"say <{MARK}think> <think>"
