"""Ids joined from bytes read as the tokenizer itself reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders

from reflash.render.control import Encoder
from reflash.render.token_bytes import token_bytes
from tests.render.test_control import SHARED, small, token

ODD = small(*map(token, ("é", "a b", "Ġx", "日本", "<|end|>", "\ufffd", "\n", "\u0141")))
some_ids = st.lists(st.integers(0, 2**20), max_size=40)


def both(tokenizer: Tokenizer, ids: list[int]) -> tuple[str, str]:
    table = token_bytes(tokenizer)
    assert table
    known = sorted(tokenizer.get_vocab(with_added_tokens=True).values())
    picked = [known[number % len(known)] for number in ids]
    return table.decode(picked), tokenizer.decode(picked, skip_special_tokens=False)


@settings(max_examples=300, deadline=None)
@given(some_ids)
def test_any_ids_of_a_vocabulary_with_odd_added_tokens(ids: list[int]) -> None:
    ours, theirs = both(ODD, ids)
    assert ours == theirs


@SHARED
@given(some_ids)
def test_any_ids_of_a_real_vocabulary(qwen3_encoder: Encoder, ids: list[int]) -> None:
    table = qwen3_encoder._bytes
    assert table
    picked = [number % 151_000 for number in ids]
    assert table.decode(picked) == qwen3_encoder.full.decode(picked, skip_special_tokens=False)


@pytest.mark.parametrize(
    "decoder", [None, decoders.Metaspace(), decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])]
)
def test_another_decoder_is_left_to_the_tokenizer(decoder: decoders.Decoder | None) -> None:
    tokenizer = small(token("<|end|>"))
    if decoder is None:
        tokenizer.decoder = None
    else:
        tokenizer.decoder = decoder
    assert token_bytes(tokenizer) is None
