"""Ids that stay the same when rows move, and that are unique whatever the source says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from reflash.printable import printable
from reflash.sources.seen import SeenHashes, hash64
from reflash.types import Message

DUPLICATE_ID, DUPLICATE_PROMPT = "duplicate id", "duplicate prompt"  # what the notes on such rows begin with


@dataclass(slots=True)
class Census:
    """Duplicates counted while rows are read."""

    duplicate_ids: int = 0  # rows whose given id an earlier row had
    duplicate_prompts: int = 0  # rows that ask what an earlier row asked; one that repeats its id too counts in both


@dataclass(frozen=True, slots=True)
class Identity:
    """One row's id and what was noticed about it."""

    id: str
    note: str = ""


def given_id(value: object) -> str | None:
    """The id that a row has, as text; None where it has none that can be used."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value - value == 0:
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return None


def content_key(messages: Sequence[Message], tools: str) -> str:
    """Text that two conversations share only if they are the same."""
    return "".join(_key(m) for m in messages) + tools


def prompt_key(messages: Sequence[Message], tools: str) -> str:
    """The same without the answers that are made again: what is asked."""
    return "".join("a" if m.role == "assistant" and not m.tool_calls else _key(m) for m in messages) + tools


def _key(m: Message) -> str:
    if not m.tool_calls and m.reasoning is None:
        return f"{m.role}{len(m.content)}:{m.content}"
    calls = "".join(f"{len(c.name)}:{c.name}{len(c.arguments)}:{c.arguments}" for c in m.tool_calls)
    return f"{m.role}{len(m.content)}:{m.content}{len(m.reasoning or '')}:{m.reasoning or ''}{calls}"


def content_id(key: str, size: int = 10) -> str:
    """A hash of content as hexadecimal, `size` bytes of it."""
    return blake2b(key.encode("utf-8", "replace"), digest_size=size).hexdigest()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a row has to say for its id."""

    given: str | None
    messages: tuple[Message, ...]
    tools: str

    @property
    def content(self) -> str:
        """A hash of the whole conversation, as hexadecimal; few rows with ids of their own ever need it."""
        return content_id(content_key(self.messages, self.tools))

    @property
    def prompt(self) -> int:
        """A hash of what is asked."""
        return hash64(prompt_key(self.messages, self.tools))

    @property
    def wanted(self) -> str:
        """The id it would have if no other row had it."""
        return self.given or self.content


class Identities:
    """Gives each row an id that no row before it has."""

    def __init__(self, census: Census | None = None) -> None:
        self.census = census or Census()
        self._ids = SeenHashes()
        self._prompts = SeenHashes()

    def assign(self, claims: Sequence[Claim]) -> list[Identity]:
        """Ids of some rows, in order. Many at a time: a look into the large set costs once for all of them."""
        names = [claim.wanted for claim in claims]
        hashes = [hash64(name) for name in names]
        old_ids = self._ids.contains_many(hashes)
        prompts = [claim.prompt for claim in claims]
        old_prompts = self._prompts.contains_many(prompts)
        new_ids: set[int] = set()
        new_prompts: set[int] = set()
        found = []
        for claim, wanted, key, prompt, old_id, old_prompt in zip(
            claims, names, hashes, prompts, old_ids, old_prompts, strict=True
        ):
            asked = old_prompt or prompt in new_prompts
            if not asked:
                new_prompts.add(prompt)
                self._prompts.add(prompt)
            if old_id or key in new_ids:
                identity = self._second(claim, asked)
            else:
                self._ids.add(key)
                identity = Identity(wanted, self._same_prompt() if asked else "")
            new_ids.add(key)
            new_ids.add(hash64(identity.id))
            found.append(identity)
        return found

    def _same_prompt(self) -> str:
        self.census.duplicate_prompts += 1
        return f"{DUPLICATE_PROMPT}: an earlier row asks the same"

    def _second(self, claim: Claim, asked: bool) -> Identity:
        """An id for a row whose own is taken: by its content, or numbered where the content is the same too."""
        if claim.given is None:
            return Identity(self._numbered(claim.content), self._same_prompt())
        self.census.duplicate_ids += 1
        wanted = claim.given if asked else f"{claim.given}#{claim.content[:8]}"
        name = self._numbered(wanted)
        note = f"{DUPLICATE_ID} of {printable(claim.given)!r}: named {printable(name)}"
        return Identity(name, f"{note}; {self._same_prompt()}" if asked else note)

    def _numbered(self, base: str) -> str:
        """The base itself where free, else the first free of base~2, base~3, ...; found by doubling and halving."""
        if self._claim(base):
            return base
        high = 2
        while hash64(f"{base}~{high}") in self._ids:
            high *= 2
        low = high // 2  # taken (or 1)
        while high - low > 1:
            middle = (low + high) // 2
            if hash64(f"{base}~{middle}") in self._ids:
                low = middle
            else:
                high = middle
        self._claim(f"{base}~{high}")
        return f"{base}~{high}"

    def _claim(self, name: str) -> bool:
        key = hash64(name)
        if key in self._ids:
            return False
        self._ids.add(key)
        return True
