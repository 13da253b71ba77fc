"""What was asked of a run: compared when it goes on, so that no run is half one thing and half another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from reflash.errors import ManifestChanged, StoreError
from reflash.printable import printable

FORMAT = 1  # of the run's folder; a higher one is refused
_MEANS = {  # what a digest stands for
    "source.digest": " (the source's files)",
    "model.rendering": " (tokenizer, chat template or how they are used)",
}
_READ = (
    ("decides.model.name", str),
    ("decides.source.digest", str),
    ("recorded.config", dict),
    ("recorded.config.source", dict),
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """`decides` makes the result what it is and must not change; `recorded` is kept to be read.

    `id` is made once, when the run begins: each file of the run carries it.
    """

    id: str
    decides: dict[str, Any]
    recorded: dict[str, Any]

    def to_json(self) -> bytes:
        """The bytes of manifest.json."""
        body = {"format": FORMAT, "id": self.id, "decides": self.decides, "recorded": self.recorded}
        return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


def read_manifest(data: bytes, name: str) -> Manifest:
    """The inverse of `Manifest.to_json`; raises StoreError naming the file."""
    try:
        body = orjson.loads(data)
        number = int(body["format"])
        manifest = Manifest(str(body["id"]), dict(body["decides"]), dict(body["recorded"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{name} is not a manifest ({printable(str(error))}); is this a run's folder?") from error
    if number > FORMAT:
        raise StoreError(f"{name} has format {number}, this version reads up to {FORMAT}: upgrade reflash")
    for lack in _lacking(manifest):
        raise StoreError(f"{name} lacks `{lack}`: put back the one that the run began with, or start in a new folder")
    return manifest


def _lacking(manifest: Manifest) -> Iterator[str]:
    """What is read of every manifest, where it is not there or of another kind."""
    for path, kind in _READ:
        node: object = {"decides": manifest.decides, "recorded": manifest.recorded}
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        if not isinstance(node, kind):
            yield path


def check_same(old: Manifest, new: Manifest, where: str) -> None:
    """Raise ManifestChanged with one line a difference, unless both would give the same result."""
    before, after = dict(_leaves(old.decides)), dict(_leaves(new.decides))
    lines = [
        f"  {printable(key)}{_MEANS.get(key, '')}: {_shown(before, key)} -> {_shown(after, key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
    if lines:
        raise ManifestChanged(
            f"{where} was started with other settings:\n" + "\n".join(lines) + "\n"
            "Set them back to go on with it, or name another run folder to start anew."
        )


def _shown(leaves: dict[str, object], key: str) -> str:
    return printable(str(leaves.get(key, "(not set)")))


def _leaves(node: object, path: str = "") -> list[tuple[str, object]]:
    if isinstance(node, dict):
        return [leaf for key, child in node.items() for leaf in _leaves(child, f"{path}.{key}" if path else key)]
    return [(path, node)]
