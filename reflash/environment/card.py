"""Versions that a model's card asks for: structure first (images, specifiers), prose second. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from reflash.engines.provision.minimum import numbers

Strength = Literal["required", "recommended", "verified", "mentioned"]
_NUMBER = r"\d+(?:\.\d+)*(?:\.?(?:post|rc|a|b|dev)\d+)*(?:\+[a-z][a-z0-9.]*)?"
_PACKAGE = re.compile(r"(?<![\w/.-])(vllm|sglang|transformers)(?:\[[\w,]+\])?(?![\w-])", re.IGNORECASE)
_IMAGE = re.compile(r"\b(vllm|sglang)[\w-]*:v?(\d+(?:\.\d+)+(?:\.?(?:post|rc)\d+)?)[\w.-]*", re.IGNORECASE)
_ELSEWHERE = re.compile(r"[\w.-]+\s*@\s*\S+|(?:git\+)?https?://\S+")  # a version in an address is no package's
_VERSION = re.compile(rf"(>=|==|<=|~=|<|>|≥)?\s*(?:version\s*)?\bv?({_NUMBER})(\+(?!\w))?", re.IGNORECASE)
_NEAR = re.compile(r"[\s:(]*(?:is\s+)?(?:versions?|releases?|nightly|stable)?[\s:(]*(?:of\s+|from\s+)?", re.IGNORECASE)
_LATER = re.compile(
    r"or (?:later|newer|above|higher)|onwards?|at least|starting (?:with|from)|minimum|and (?:later|above)",
    re.IGNORECASE,
)
_NEWEST = re.compile(r"nightly|\bmain\b|latest|--pre\b|from source", re.IGNORECASE)
_STRENGTHS: tuple[tuple[Strength, re.Pattern[str]], ...] = (
    ("required", re.compile(r"requir|\bmust\b|\bneeds?\b|at least|minimum", re.IGNORECASE)),
    ("recommended", re.compile(r"recommend|suggest", re.IGNORECASE)),
    ("verified", re.compile(r"verif|tested|validated", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing that a card says of a package."""

    package: str  # vllm, sglang, transformers
    operator: str  # ">=", "==", "<" …, "" where it names a version and no more
    version: str  # "" where it names none
    strength: Strength
    line: int  # 1-based
    newest: bool = False  # a nightly, the main branch, "latest"
    image: bool = False


def read_card(text: str) -> tuple[Asked, ...]:
    """Everything that a card says of the packages it names, in its order, each once a line."""
    found: list[Asked] = []
    for number, line in enumerate(text.splitlines(), 1):
        for asked in _of_line(re.sub(r"[`*\"'“”]", "", line), number):
            if asked not in found:
                found.append(asked)
    return tuple(found)


def strictest(asked: Iterable[Asked], package: str, strengths: Sequence[Strength] = ()) -> Asked | None:
    """The highest of the least versions of a package; None where there is none. All strengths, or those named."""
    least = [
        a
        for a in asked
        if a.package == package and a.operator in (">=", "==") and (not strengths or a.strength in strengths)
    ]
    return max(least, key=lambda a: numbers(a.version), default=None)


def _strength(line: str) -> Strength:
    return next((name for name, words in _STRENGTHS if words.search(line)), "mentioned")


def _of_line(line: str, number: int) -> list[Asked]:
    strength = _strength(line)
    found = [Asked(m[1].lower(), "", m[2], strength, number, image=True) for m in _IMAGE.finditer(line)]
    line = _ELSEWHERE.sub(" ", _IMAGE.sub(" ", line))
    package, operator = "", ""
    for clause in re.split(r";\s*|,\s+|\.\s+", line):
        names = list(_PACKAGE.finditer(clause))
        if not names and package:  # "transformers >= 4.43; v4.51": the second is of the same
            bare = re.fullmatch(rf"\s*v({_NUMBER})\s*", clause)
            found += [Asked(package, operator or ">=", bare[1], strength, number)] if bare else []
        ends = [*(name.start() for name in names[1:]), len(clause)]
        for name, end in zip(names, ends, strict=False):  # where there is no name, one end is left over
            package = name[1].lower()
            tail = clause[name.end() : end]
            told = _versions(clause, tail)
            operator = told[-1][0] if told else ""
            found += [Asked(package, op, version, strength, number) for op, version in told]
            if not told and _NEWEST.search(clause):
                found.append(Asked(package, "", "", strength, number, newest=True))
    return found


def _versions(clause: str, tail: str) -> list[tuple[str, str]]:
    """Operators and versions of a package's tail: those with an operator, or one that stands right behind its name."""
    told = []
    for match in _VERSION.finditer(tail):
        operator = (match[1] or "").replace("≥", ">=")
        if not operator and not _NEAR.fullmatch(tail[: match.start()]):
            continue
        if not operator and "." not in match[2]:  # "SGLang 4 GPUs"
            continue
        if not operator and (match[3] or _LATER.search(clause)):
            operator = ">="
        told.append((operator, match[2]))
    return told
