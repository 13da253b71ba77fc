"""Supervised ids as text, and what a tokenizer says of its control ids."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.config.model import ModelConfig
from reflash.printable import printable
from reflash.render.reading import THINKING
from reflash.render.tokenizer import LoadedTokenizer, load_tokenizer
from reflash.tokenized.families import Family

_OPENS = ("<|im_start|>", "<|start_header_id|>", "<|start|>", "<start_of_turn>")
_SHOWN = 200  # characters
_IDS = 12  # shown where there is no tokenizer


class Words:
    """Reads ids with a tokenizer; without one they stay numbers. Raises RenderError where it cannot be loaded."""

    def __init__(self, tokenizer: str | None) -> None:
        self.loaded: LoadedTokenizer | None = None
        if tokenizer is not None:
            self.loaded = load_tokenizer(ModelConfig(name=tokenizer, tokenizer=tokenizer))

    def text(self, ids: Sequence[int] | str) -> str:
        """All of it, control tokens written out; text as it is."""
        if isinstance(ids, str):
            return printable(ids, _SHOWN)
        if self.loaded is None:
            more = f" … {len(ids):,} ids" if len(ids) > _IDS else ""
            return f"ids {' '.join(map(str, ids[:_IDS]))}{more}"
        return printable(self.loaded.tokenizer.decode(list(ids), skip_special_tokens=False), _SHOWN)

    def says(self, ids: Sequence[int] | str) -> str | None:
        """What a reader of the answer sees, behind its thought; None without a tokenizer."""
        if isinstance(ids, str):
            return printable(ids.strip(), _SHOWN)
        if self.loaded is None:
            return None
        text = self.loaded.tokenizer.decode(list(ids), skip_special_tokens=True)
        for _, closes in THINKING:
            text = text.rpartition(closes)[2]
        return printable(text.strip(), _SHOWN)

    def family(self) -> Family | None:
        """The control ids that the tokenizer has; None without one, and without an end mark."""
        if self.loaded is None or not self.loaded.stop_ids:
            return None
        number = self.loaded.tokenizer.token_to_id
        opens = tuple(n for mark in _OPENS if (n := number(mark)) is not None)
        pad = number(self.loaded.special["pad_token"]) if "pad_token" in self.loaded.special else None
        pairs = ((number(opening), number(closing)) for opening, closing in THINKING)
        thinks = next(((a, b) for a, b in pairs if a is not None and b is not None), None)
        size = self.loaded.tokenizer.get_vocab_size(with_added_tokens=True)
        pads = () if pad is None else (pad,)
        return Family(self.loaded.name, 0, size, size, self.loaded.stop_ids, opens, pads, (), thinks)
