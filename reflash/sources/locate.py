"""From what the user wrote to the files that hold the rows, in an order that never changes."""

from __future__ import annotations

import glob
import json
import re
from pathlib import Path

from reflash.errors import SourceAbsent, SourceError
from reflash.printable import printable
from reflash.sources.columns import ArrowPart, ParquetPart
from reflash.sources.raw import BrokenPart, Part
from reflash.sources.streams import PACKINGS, reading
from reflash.sources.textfile import TextPart
from reflash.sources.walk import Found, is_run, oddity, shown, walk

_TEXT = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_PACKED = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz")
_SIDE = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
_SHARD = re.compile(r"^(?P<stem>.*?)-?(?P<index>\d{4,})-of-(?P<count>\d{4,})(?P<end>.*)$")
_SPLIT = re.compile(r"^(train|test|validation|valid|val|dev|eval)(?=$|[-_./])")
KNOWN = (
    "JSON Lines, a JSON array (each also .gz, .zst, .bz2 or .xz), Parquet, Arrow, or a folder that save_to_disk made"
)


def format_of(name: str) -> str | None:
    """What a file's name says of its format: text, parquet, arrow; None where it says nothing."""
    lower = name.lower()
    for packed in _PACKED:
        lower = lower.removesuffix(packed)
    for kind, endings in (("text", _TEXT), ("parquet", _PARQUET), ("arrow", _ARROW)):
        if lower.endswith(endings):
            return kind
    return None


def locate(path: Path, split: str | None) -> tuple[list[Part], list[str]]:
    """Parts of a local source (a folder, a file or a pattern), and notes on what was chosen. Raises SourceError."""
    if path.is_dir():
        return _folder(path, split)
    if path.is_file():
        if split is not None:
            raise SourceError(f"{shown(path)}: one file has no splits; leave `source.split` out, or name the folder")
        return [part_of(path)], []
    if (what := oddity(path)) is not None:
        raise SourceError(f"{shown(path)}: is {what}, not a regular file; write what it gives to a file first")
    return _glob(path)


def is_pattern(path: Path) -> bool:
    """Whether a path is a pattern for several files."""
    return any(mark in str(path) for mark in "*?[")


def part_of(path: Path, name: str | None = None) -> Part:
    """The reader that fits one file, by its first bytes, then by its name.

    `name` is what the user calls it, if not its path. Raises SourceError.
    """
    file = name or shown(path)
    with reading(file), path.open("rb") as handle:
        head = handle.read(64)
    named = format_of(path.name)
    if head.startswith(b"PAR1") or named == "parquet":
        return ParquetPart(file, path)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) or named == "arrow":
        return ArrowPart(file, path)
    if named == "text" or head.startswith(tuple(PACKINGS)) or head.lstrip()[:1] in (b"{", b"["):
        return TextPart(file, path)
    raise SourceError(f"{file}: unknown format; Reflash reads {KNOWN}")


def _part(path: Path) -> Part:
    """The reader of one file among several: that it cannot be opened is said when it is read."""
    try:
        return part_of(path)
    except SourceError as error:
        return BrokenPart(shown(path), str(error))


def _glob(path: Path) -> tuple[list[Part], list[str]]:
    found = Found()
    for name in sorted(glob.glob(str(path), recursive=True)):
        if Path(name).name not in _SIDE:
            found.take(Path(name), shown(name))
    if not found.files:
        what = f"only {', '.join(found.passed[:5])}" if found.passed else "no file"
        where = "" if path.is_absolute() else f"; it was looked for from {shown(Path.cwd())} on"
        raise SourceAbsent(f"{shown(path)}: {what} matches this pattern{where}")
    return [_part(file) for file in found.files], found.notes(shown(path))


def _folder(path: Path, split: str | None) -> tuple[list[Part], list[str]]:
    if is_run(path):
        raise SourceError(f"{shown(path)}: is the folder of a run; its finished rows are in {shown(path / 'dataset')}")
    if (path / "dataset_dict.json").is_file():
        return _dataset_dict(path, split)
    if (path / "state.json").is_file():
        if split is not None:
            raise SourceError(f"{shown(path)}: this folder holds one set without splits; leave `source.split` out")
        return list(_saved_set(path)), []
    inner = sorted(state.parent.name for state in path.glob("*/state.json"))
    if inner:
        raise SourceError(
            f"{shown(path)}: holds saved sets ({', '.join(inner)}) but no dataset_dict.json; name one of them"
        )
    return _loose_files(path, split)


def _dataset_dict(path: Path, split: str | None) -> tuple[list[Part], list[str]]:
    splits = _json(path / "dataset_dict.json").get("splits")
    names = [str(name) for name in splits] if isinstance(splits, list) else []
    chosen, notes = choose_split(names, split, shown(path))
    folder = path / chosen
    if not (folder / "state.json").is_file():
        raise SourceError(f"{shown(folder)}: dataset_dict.json names this split, but its state.json is missing")
    return list(_saved_set(folder)), notes


def choose_split(names: list[str], split: str | None, name: str) -> tuple[str, list[str]]:
    """The split asked for, or the only one, or `train`, with a note. Raises SourceError listing them."""
    listed = printable(", ".join(names)) or "none"
    if split is not None:
        if split not in names:
            raise SourceError(f"{name}: has no split {printable(split)}; its splits: {listed}")
        return split, []
    if len(names) == 1:
        return names[0], []
    if "train" in names:
        return "train", [f"{name}: split train is used; its splits: {listed} (choose with `source.split`)"]
    raise SourceError(f"{name}: say which split with `source.split`; its splits: {listed}")


def _saved_set(folder: Path) -> list[ArrowPart]:
    """Files of a `save_to_disk` folder, in the order of its state.json."""
    state = _json(folder / "state.json")
    files = state.get("_data_files")
    if not isinstance(files, list) or not files:
        raise SourceError(f"{shown(folder / 'state.json')}: names no data files; save the set again")
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise SourceError(
            f"{shown(folder)}: has an index mapping beside its rows; save it again with a current `datasets`"
        )
    names = [str(entry.get("filename", "")) if isinstance(entry, dict) else "" for entry in files]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        lost = printable(", ".join(missing))
        raise SourceError(f"{shown(folder)}: state.json names {lost}, which is missing; copy it again")
    return [ArrowPart(shown(folder / name), folder / name) for name in names]


def _json(path: Path) -> dict[str, object]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"{shown(path)}: unreadable ({printable(str(error))})") from error
    if not isinstance(value, dict):
        raise SourceError(f"{shown(path)}: holds no JSON object")
    return value


def _loose_files(path: Path, split: str | None) -> tuple[list[Part], list[str]]:
    """Every data file under a folder; where all their names say a split, only one split's."""
    found = walk(path)
    data = [file for file in found.files if format_of(file.name) and file.name not in _SIDE]
    if not data:
        names = ", ".join([shown(file.name) for file in found.files[:5]] + found.passed[:5]) or "nothing"
        raise SourceError(f"{shown(path)}: holds no data file (seen: {names}); Reflash reads {KNOWN}")
    notes: list[str] = []
    named = {file: _split_of(file.relative_to(path)) for file in data}
    splits = sorted({name for name in named.values() if name})
    if split is not None or (len(splits) > 1 and all(named.values())):
        chosen, notes = choose_split(splits, split, shown(path))
        data = [file for file in data if named[file] == chosen]
    _all_shards(data)
    found.passed.extend(
        f"{shown(file.relative_to(path))} (not data)"
        for file in found.files
        if file not in named and file.name not in _SIDE
    )
    return [_part(file) for file in data], notes + found.notes(shown(path))


def _split_of(inside: Path) -> str | None:
    for name in reversed(inside.parts):
        if match := _SPLIT.match(name):
            return match.group(1)
    return None


def _all_shards(files: list[Path]) -> None:
    """`x-00001-of-00003`: the names say how many there are, so a missing one shows."""
    there: dict[tuple[Path, str, int, str], set[int]] = {}
    for path in files:
        if match := _SHARD.match(path.name):
            key = (path.parent, match["stem"], int(match["count"]), match["end"])
            there.setdefault(key, set()).add(int(match["index"]))
    for (folder, stem, count, end), found in there.items():
        first = 0 if 0 in found or count not in found else 1
        absent = count - sum(first <= index < first + count for index in found)
        if absent > 0:
            missing = next(index for index in range(first, first + count) if index not in found)
            name = shown(f"{stem}-{missing:05d}-of-{count:05d}{end}")
            raise SourceError(
                f"{shown(folder)}: {absent:,} of {count:,} shards are missing, the first of them {name}; "
                "copy them, or name the files you want with a pattern"
            )
