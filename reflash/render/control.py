"""Text to ids, where a control token is one only if the template wrote it.

A tokenizer's added tokens match anywhere: `<|im_end|>` typed by a user would end the turn. So strings that come from
outside are marked before they are rendered: a Unicode noncharacter goes behind the first character of whatever reads
as a control token, where no `strip` removes it. The encoder finds control tokens only where no mark stands, takes the
marks out, and encodes the rest with a tokenizer that knows no control token, so that its merges are those of plain
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tokenizers import AddedToken, Tokenizer

from reflash.render.plain import plain_tokenizer, without_prefix
from reflash.render.token_bytes import TokenBytes, token_bytes

MARK = "\ufdd0"  # a user's own is written twice
REPLACEMENT = "\ufffd"
SPACE = r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"  # what `tokenizers` strips beside a token
SHORT = 64  # characters of a piece of scaffolding worth keeping
KEPT = 4096  # pieces

_MARKED = re.compile(f"{MARK}({MARK}?)")
_BRACKETED = re.compile(r"[<\[].+[>\]]", re.DOTALL)
_PIPED = re.compile(r"<[|｜].+[|｜]>")
_KNOWN = re.compile(r"</?\|?(think|tool|function|param|arg_|answer|reason|observ)\w*\|?>")


def control_tokens(tokenizer: Tokenizer, added: Iterable[AddedToken], template: str) -> frozenset[str]:
    """Which added tokens are control: the special ones, and bracketed ones that a template or its kind makes use of.

    Not all: some vocabularies list runs of spaces or HTML tags, which are ordinary text to their models.
    """
    trained = tokenizer.model.token_to_id
    return frozenset(
        token.content
        for token in added
        if len(token.content) > 1 and (token.special or _is_markup(token.content, template, trained(token.content)))
    )


def _is_markup(text: str, template: str, trained: int | None) -> bool:
    """`trained`: its id in the model's own vocabulary; a bracketed token that was added to that is no ordinary text."""
    if _PIPED.fullmatch(text) or _KNOWN.fullmatch(text):
        return True
    return bool(_BRACKETED.fullmatch(text)) and (trained is None or text in template)


class Encoder:
    """A tokenizer that tells control tokens from text that only reads like them. Safe to use from several threads.

    `control` maps the text of each control token to its id; every id is below `vocabulary`; `plain` is the tokenizer of
    text without control tokens. Raises RenderError for a tokenizer whose plain text cannot be kept apart from its
    control tokens; `name` is what the error calls it.
    """

    def __init__(self, tokenizer: Tokenizer, template: str = "", name: str = "tokenizer") -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        added: dict[int, AddedToken] = tokenizer.get_added_tokens_decoder()
        control = control_tokens(tokenizer, added.values(), template)
        self.full = tokenizer
        self.control = {token.content: number for number, token in added.items() if token.content in control}
        self.control_ids = frozenset(self.control.values())
        self.vocabulary = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
        self.plain = plain_tokenizer(tokenizer, added, self.control, name)
        self._inner = without_prefix(self.plain)
        self._gaps = tokenizer.get_vocab_size(with_added_tokens=True) < self.vocabulary
        self._names = {number: text for text, number in self.control.items()}
        self._starts = tuple({text[0] for text in control})
        self._split = re.compile(_split_pattern(added, self.control))
        self._lookalike = re.compile(f"(?={_either(control)})(.)", re.DOTALL)
        self._pieces: dict[str, tuple[int, ...]] = {}

    def mark(self, text: str) -> str:
        """Text from outside, so marked that `encode` keeps it text."""
        if MARK in text:
            text = text.replace(MARK, MARK + MARK)
        if any(start in text for start in self._starts):
            return self._lookalike.sub(rf"\1{MARK}", text)
        return text

    def mark_all(self, value: Any) -> Any:
        """Every string in a JSON value marked, keys too."""
        if isinstance(value, str):
            return self.mark(value)
        if isinstance(value, list):
            return [self.mark_all(item) for item in value]
        if isinstance(value, dict):
            return {self.mark(key): self.mark_all(item) for key, item in value.items()}
        return value

    def encode(self, text: str) -> list[int]:
        """Ids of rendered text: control tokens where no mark stands, marks taken out."""
        if MARK not in text:
            ids: list[int] = self.full.encode(text, add_special_tokens=False).ids
            return ids
        out: list[int] = []
        at = 0
        for match in self._split.finditer(text):
            out += self._text(text[at : match.start()], at)
            out.append(self.control[match[match.lastindex or 0]])
            at = match.end()
        return out + self._text(text[at:], at)

    def encode_piece(self, text: str) -> list[int]:
        """The same, for a renderer that writes a prompt in many pieces: short ones come again and are kept."""
        if len(text) > SHORT:
            return self.encode(text)
        known = self._pieces.get(text)
        if known is None:
            known = tuple(self.encode(text))
            if len(self._pieces) < KEPT:
                self._pieces[text] = known
        return list(known)

    def encode_plain(self, text: str) -> list[int]:
        """Ids of text without a single control token."""
        ids: list[int] = self.plain.encode(text, add_special_tokens=False).ids
        return ids

    def spells(self, ids: list[int]) -> bool:
        """Whether ids are what their own text encodes to, at the start of a text or behind a control token."""
        text = self.decode(ids)
        tokenizers = (self.plain,) if self._inner is self.plain else (self.plain, self._inner)
        return any(tokenizer.encode(text, add_special_tokens=False).ids == ids for tokenizer in tokenizers)

    def _text(self, text: str, at: int) -> list[int]:
        if not text:
            return []
        tokenizer = self._inner if at else self.plain
        ids: list[int] = tokenizer.encode(unmark(text), add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens written out; U+FFFD for an id that does not exist."""
        if not ids:
            return ""
        if not self._gaps and max(ids) < self.vocabulary and min(ids) >= 0:
            return self._decode(ids)
        runs: list[list[int]] = [[]]
        for number in ids:
            if 0 <= number < self.vocabulary and self.full.id_to_token(number) is not None:
                runs[-1].append(number)
            else:
                runs.append([])
        return REPLACEMENT.join(self._decode(run) for run in runs)

    def decode_marked(self, ids: Sequence[int]) -> str:
        """Text of ids in which what reads like a control token but is none is marked."""
        out: list[str] = []
        run: list[int] = []
        for number in ids:
            name = self._names.get(number)
            if name is None:
                run.append(number)
                continue
            out += (self.mark(self.decode(run)), name)
            run = []
        out.append(self.mark(self.decode(run)))
        return "".join(out)

    def _decode(self, ids: Sequence[int]) -> str:
        if table := self._bytes:
            return table.decode(ids)
        text: str = self.full.decode(list(ids), skip_special_tokens=False)
        return text

    @cached_property
    def _bytes(self) -> TokenBytes | None:
        return token_bytes(self.full)


def unmark(text: str) -> str:
    """Marked text as it was before."""
    return _MARKED.sub(r"\1", text) if MARK in text else text


def _either(texts: Iterable[str]) -> str:
    """A pattern for any of some texts, the longest first; it matches nothing where there are none."""
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    return f"(?:{'|'.join(map(re.escape, longest_first))})" if longest_first else "(?!)"


def _split_pattern(added: Mapping[int, AddedToken], control: Mapping[str, int]) -> str:
    """A pattern that finds control tokens as `tokenizers` does; its last group is the token without spaces."""
    tokens = [added[number] for number in control.values()]
    if not any(token.lstrip or token.rstrip or token.single_word for token in tokens):
        return f"({_either(control)})"
    tokens.sort(key=lambda token: (-len(token.content), token.content))
    return "|".join(map(_flagged, tokens))


def _flagged(token: AddedToken) -> str:
    word_before, word_after = (r"(?<!\w)", r"(?!\w)") if token.single_word else ("", "")
    # A run of spaces is taken from its start or not at all: tried from each of its spaces, it takes the square of time.
    before = f"(?:(?<!{SPACE}){SPACE}+)?" if token.lstrip else ""
    after = f"{SPACE}*" if token.rstrip else ""
    return f"{before}{word_before}({re.escape(token.content)}){word_after}{after}"
