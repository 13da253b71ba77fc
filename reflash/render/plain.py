"""A tokenizer without control tokens, made from one that has them."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer

from reflash.errors import RenderError


def plain_tokenizer(
    full: Tokenizer, added: Mapping[int, AddedToken], control: Mapping[str, int], name: str
) -> Tokenizer:
    """The same vocabulary and merges, but no text becomes a control token. Ids stay as they are.

    Shares the model in memory where it can. Raises RenderError where plain text still gives a control id.
    """
    kept = {number: token for number, token in added.items() if token.content not in control}
    plain = _sharing_model(full, kept)
    if _fault(plain, kept, control):
        plain = _rebuilt(full, kept, control)
    if fault := _fault(plain, kept, control):
        raise RenderError(
            f"{name}: this tokenizer cannot tell the control token {fault} from text that reads the same, "
            "so what a user types could end a turn; take the model's own tokenizer.json"
        )
    return plain


def without_prefix(plain: Tokenizer) -> Tokenizer:
    """The tokenizer for text behind a control token: some put a word mark only before the very first word."""
    state = plain.pre_tokenizer.__getstate__() if plain.pre_tokenizer is not None else b""
    if b'"prepend_scheme":"first"' not in state:
        return plain
    inner = copy.deepcopy(plain)
    pre_tokenizer = copy.deepcopy(plain.pre_tokenizer)
    pre_tokenizer.__setstate__(state.replace(b'"prepend_scheme":"first"', b'"prepend_scheme":"never"'))
    inner.pre_tokenizer = pre_tokenizer
    return inner


def _sharing_model(full: Tokenizer, kept: Mapping[int, AddedToken]) -> Tokenizer:
    plain = Tokenizer(full.model)
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        if getattr(full, part) is not None:
            setattr(plain, part, getattr(full, part))
    plain.add_tokens([kept[number] for number in sorted(kept)])
    return plain


def _rebuilt(full: Tokenizer, kept: Mapping[int, AddedToken], control: Collection[str]) -> Tokenizer:
    """Control tokens taken out of the model's own vocabulary, other added tokens put into it to keep their ids."""
    state = json.loads(full.to_str())
    model = state["model"]
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in control]
    state["post_processor"] = None
    if isinstance(model["vocab"], list):  # Unigram: an id is a place, so a piece is renamed
        model["vocab"] = [[f"\ufdd1{i}" if p in control else p, s] for i, (p, s) in enumerate(model["vocab"])]
    else:
        ordinary = {text: number for text, number in model["vocab"].items() if text not in control}
        model["vocab"] = ordinary | {token.content: number for number, token in kept.items()}
    if "merges" in model:
        model["merges"] = [merge for merge in model["merges"] if not _makes(merge, control)]
    return Tokenizer.from_str(json.dumps(state))


def _makes(merge: Any, control: Collection[str]) -> bool:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left in control or right in control or left + right in control


def _fault(plain: Tokenizer, kept: Mapping[int, AddedToken], control: Mapping[str, int]) -> str:
    """The first token that comes out wrong, or ""."""
    for number, token in kept.items():
        if plain.token_to_id(token.content) != number:
            return str(token.content)
    for text, number in control.items():
        for context in (text, f" {text}", f"a{text}b\n"):
            if number in plain.encode(context, add_special_tokens=False).ids:
                return text
    return ""
