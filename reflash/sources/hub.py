"""Sets on the Hugging Face Hub: `owner/name`, `hf:owner/name[:split]`, `hf://datasets/owner/name/file`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.printable import printable
from reflash.sources.columns import without_nulls
from reflash.sources.locate import choose_split, format_of, part_of
from reflash.sources.raw import Part, RawRow
from reflash.types import Origin

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_BARE = re.compile(rf"^(?P<id>{_PART}/{_PART})$")
_FULL = re.compile(
    rf"^(?:hf:(?://)?(?:datasets/)?|https?://huggingface\.co/datasets/)"
    rf"(?P<id>(?!datasets/){_PART}/[A-Za-z0-9._-]+)(?:@(?P<revision>[^/:]+))?(?P<file>/[^:]+)?(?::(?P<split>[^:/]+))?/?$"
)
_SCHEMES = ("hf:", "https://huggingface.co/", "http://huggingface.co/")
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class HubReference:
    """What the user named on the Hub."""

    id: str  # owner/name
    split: str | None = None
    revision: str | None = None
    file: str | None = None  # path inside the repository
    name: str = ""  # as the user wrote it


def hub_reference(name: str) -> HubReference | None:
    """What a path means on the Hub; None where it is a local path. Raises SourceError on a malformed `hf:` name."""
    if (bare := _BARE.match(name)) and format_of(name) is None:
        return HubReference(bare["id"], name=name)
    if not name.startswith(_SCHEMES):
        return None
    full = _FULL.match(name)
    if full is None:
        forms = "owner/name, hf:owner/name:split or hf://datasets/owner/name/file"
        raise SourceError(f"{name}: not a name on the Hub; write {forms}")
    file = (full["file"] or "").strip("/") or None
    return HubReference(full["id"], full["split"], full["revision"], file, name)


def hub_parts(reference: HubReference, config: SourceConfig) -> tuple[list[Part], list[str]]:
    """The parts of a set on the Hub, after one quick question to it. Raises SourceError holding the id."""
    split = reference.split or config.split
    revision = reference.revision or config.revision
    wanted = replace(reference, split=split, revision=revision)
    pinned = _ask(wanted)
    if wanted.file is not None:
        return [_downloaded(wanted, wanted.file, pinned)], []
    names = _splits(wanted, pinned)
    chosen, notes = choose_split(names, split, wanted.id)
    return [HubPart(wanted.id, chosen, pinned or revision)], notes


@dataclass(frozen=True, slots=True)
class HubPart:
    """One split of a Hub set, streamed."""

    id: str
    split: str
    revision: str | None  # the commit, where the Hub said which

    @property
    def file(self) -> str:
        """`owner/name:split`."""
        return f"{self.id}:{self.split}"

    def records(self) -> Iterator[RawRow]:
        """Rows as `datasets` streams them. Raises SourceError."""
        with _answering(self.file, f"where its rows fit no one schema, name a file: hf://datasets/{self.id}/FILE"):
            for number, value in enumerate(_load(self.id, self.split, self.revision), 1):
                yield RawRow(Origin(self.file, number), without_nulls(value))

    def content(self) -> Iterator[bytes]:
        """Id, split and commit; for an offline copy, its fingerprint."""
        yield f"{self.id}\n{self.split}\n".encode()
        if self.revision is not None:
            yield self.revision.encode()
            return
        with _answering(self.id):
            yield str(getattr(_load(self.id, self.split, None), "_fingerprint", "")).encode()


def _load(name: str, split: str | None, revision: str | None) -> Any:
    from datasets import load_dataset  # takes seconds to import

    return load_dataset(name, split=split, revision=revision, streaming=True)


def _splits(wanted: HubReference, pinned: str | None) -> list[str]:
    with _answering(wanted.name):
        return [str(name) for name in _load(wanted.id, None, pinned or wanted.revision)]


def _downloaded(wanted: HubReference, file: str, pinned: str | None) -> Part:
    from huggingface_hub import hf_hub_download

    name = f"hf://datasets/{wanted.id}/{file}"
    with _answering(wanted.name):
        path = hf_hub_download(wanted.id, file, repo_type="dataset", revision=pinned or wanted.revision)
    return part_of(Path(path), name)


def _ask(wanted: HubReference) -> str | None:
    """The commit that the Hub has for this set; None in offline mode, where only a local copy can serve.

    One question with a deadline of its own: `datasets` alone retries for 23 s where nothing answers, and a name
    server that never answers knows no timeout. Raises SourceError.
    """
    from huggingface_hub.errors import OfflineModeIsEnabled

    answer: SimpleQueue[str | Exception | None] = SimpleQueue()
    Thread(target=_question, args=(wanted, answer), daemon=True).start()
    try:
        got = answer.get(timeout=_SECONDS)
    except Empty as error:
        raise _unreachable(wanted.name, f"no answer in {_SECONDS:.0f} s") from error
    if isinstance(got, OfflineModeIsEnabled):
        return None
    if isinstance(got, Exception):
        raise _unreachable(wanted.name, _said(got)) from got
    return got


def _question(wanted: HubReference, answer: SimpleQueue[str | Exception | None]) -> None:
    from huggingface_hub import HfApi

    try:
        answer.put(HfApi().dataset_info(wanted.id, revision=wanted.revision, timeout=_SECONDS / 2).sha)
    except Exception as error:  # noqa: BLE001 - the client lets through the errors of whichever HTTP library it uses
        answer.put(error)


@contextmanager
def _answering(name: str, remedy: str = "") -> Iterator[None]:
    """Turn whatever `datasets` and the Hub's client raise into a SourceError that holds the id."""
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        raise _unreachable(name, _said(error), remedy) from error


def _said(error: Exception) -> str:
    return printable(" ".join(str(error).split()), 300) or type(error).__name__


def _unreachable(name: str, why: str, remedy: str = "") -> SourceError:
    remedy = remedy or "check the id, the network and, for a private set, HF_TOKEN"
    if Path(name).exists():
        remedy = f"to read the local folder of that name, write ./{name}"
    return SourceError(f"{name}: cannot be read from the Hugging Face Hub ({why}); {remedy}")
