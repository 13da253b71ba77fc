"""What decoding answers and encoding them again costs, beside gigatoken's and `tokenizers`' own encoding of the text.

usage: uv run python benchmarks/retokenize.py [--mb 200] [--reference-mb 4] [--rounds 5] [--tokenizer FOLDER]
           [--out FILE]

The text is source code and prose of the packages installed here, each piece once, cut to the length of answers; one
answer in a hundred is spelled in tokens that its text would not give. gigatoken is told to take one core, as it does by
itself in a worker process; retokenize encodes on one core too, while a thread decodes the next block on another, so the
machine needs two. What both cost of all cores together stands beside: there decoding counts in full. Each round has a
new tokenizer: a cache that has seen the text would flatter both. Of the rounds the least disturbed counts, of each way
its own. Exits 1 where a limit is missed; one by the clock is missed for sure where others take much of the machine, and
their share in the best round is told.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
from numpy.typing import NDArray
from quiet import Cost, cost

from reflash.config.model import ModelConfig
from reflash.render.control import Encoder
from reflash.render.fast import fast_tokenizer
from reflash.render.retokenize import Retokenizer
from reflash.render.tokenizer import load_tokenizer

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PIECE = 6000  # characters of an answer: some 1,500 tokens
RESPELLED = 0.01
OF_GIGATOKEN, OF_TOKENIZERS = 0.7, 20.0  # what is promised


@dataclass(frozen=True, slots=True)
class Answers:
    """Texts and their ids, one behind the other."""

    texts: list[bytes]
    ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    respelled: NDArray[np.bool_]

    @property
    def megabytes(self) -> float:
        return sum(map(len, self.texts)) / 1e6


def main() -> int:
    """Build, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=200.0, help="megabytes of text")
    parser.add_argument("--reference-mb", type=float, default=4.0, help="of which `tokenizers` encodes so many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer's folder; by default that of Qwen3.6, made here")
    parser.add_argument("--out", type=Path, help="JSON; by default benchmarks/results/retokenize-CORES-DATE.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        name = str(options.tokenizer or _qwen(Path(folder)))
        encoder = Encoder(load_tokenizer(ModelConfig(name="measured", tokenizer=name)).tokenizer)
    source = encoder.plain.to_str()
    answers = _answers(options.mb, source, encoder)
    print(f"{len(answers.ends):,} answers, {len(answers.ids):,} tokens, {answers.megabytes:,.1f} MB", flush=True)
    found = _measured(answers, encoder, source, options)
    for key, value in found.items():
        print(f"{key:<50}{value:,.3f}" if isinstance(value, float) else f"{key:<50}{value}")
    out = options.out or RESULTS / f"retokenize-{os.cpu_count()}cores-{time.strftime('%Y-%m-%d')}.json"
    out.write_text(json.dumps(found, indent=2) + "\n")
    print(out)
    return 0 if all(value for key, value in found.items() if key.startswith("met")) else 1


def _measured(answers: Answers, encoder: Encoder, source: str, options: argparse.Namespace) -> dict[str, Any]:
    tokens = len(answers.ids)
    own: dict[str, list[Cost]] = {way: [] for way in ("batches", "each", "all cores")}
    ours: list[Cost] = []
    same = np.zeros(0, np.bool_)
    for _ in range(options.rounds):
        for way, costs in own.items():
            costs.append(_gigatoken(answers, source, way))
        spent, same = _retokenized(answers, encoder)
        ours.append(spent)
    sample, seconds, unlike = _reference(answers, encoder, options.reference_mb)
    rates = {
        "gigatoken, its batches, tokens/s": tokens / _wall(own["batches"]),
        "gigatoken, one text at a time, tokens/s": tokens / _wall(own["each"]),
        "gigatoken, its batches on all cores, tokens/s": tokens / _wall(own["all cores"]),
        "retokenize (decode, encode, compare), tokens/s": tokens / _wall(ours),
        "tokenizers (encode alone), tokens/s": sample / seconds,
    }
    giga, each, all_cores, retokenize, reference = rates.values()
    to_giga, to_reference = retokenize / max(giga, each), retokenize / reference
    cpu = min(_cpu(own["batches"]), _cpu(own["each"]))
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}",
        "versions": f"gigatoken {version('gigatoken')}, tokenizers {version('tokenizers')}",
        "tokens": tokens,
        "megabytes": round(answers.megabytes, 1),
        "rounds": options.rounds,
        **{key: round(value) for key, value in rates.items()},
        "retokenize to gigatoken on one core": round(to_giga, 3),
        "retokenize to gigatoken on all cores": round(retokenize / all_cores, 3),
        "retokenize to gigatoken by CPU time": round(cpu / _cpu(ours), 3),
        "gigatoken, CPU ns/token": round(cpu / tokens * 1e9, 1),
        "retokenize, CPU ns/token": round(_cpu(ours) / tokens * 1e9, 1),
        "taken by others meanwhile": round(min(ours, key=lambda spent: spent.wall_s).others, 2),
        "retokenize to tokenizers": round(to_reference, 1),
        "answers that tokenizers encoded too": int(sample and len(unlike)),
        "of them with other ids": int(unlike.sum()),
        "respelled": int(answers.respelled.sum()),
        "found not canonical": int((~same).sum()),
        f"met: {OF_GIGATOKEN} of gigatoken": bool(to_giga >= OF_GIGATOKEN),
        f"met: {OF_TOKENIZERS:g} times tokenizers": bool(to_reference >= OF_TOKENIZERS),
        "met: same ids": bool(not unlike.any() and np.array_equal(~same, answers.respelled)),
    }


def _wall(costs: Sequence[Cost]) -> float:
    return min(spent.wall_s for spent in costs)


def _cpu(costs: Sequence[Cost]) -> float:
    return min(spent.cpu_s for spent in costs)


def _gigatoken(answers: Answers, source: str, way: str) -> Cost:
    """What it takes for the text alone, with a new tokenizer, in large blocks."""
    from gigatoken import Tokenizer

    tokenizer = Tokenizer.from_json(source).backend
    tokenizer.encode_batch(answers.texts[:1], parallel=False)  # imports what it needs
    blocks = [answers.texts[at : at + 2000] for at in range(0, len(answers.texts), 2000)]
    with cost() as spent:
        for block in blocks:
            if way != "each":
                tokenizer.encode_batch(block, parallel=way == "all cores")
            else:
                for text in block:
                    tokenizer.encode(text)
    return spent


def _retokenized(answers: Answers, encoder: Encoder) -> tuple[Cost, NDArray[np.bool_]]:
    retokenizer = Retokenizer(encoder, "measured")
    retokenizer.canonical(answers.ids[: answers.ends[0]], answers.ends[:1])  # loads the tokenizer
    with cost() as spent:
        same = retokenizer.canonical(answers.ids, answers.ends)
    return spent, same


def _reference(answers: Answers, encoder: Encoder, megabytes: float) -> tuple[int, float, NDArray[np.bool_]]:
    """Tokens and seconds of as many texts, one core, and which of them have other ids than they should."""
    sizes = np.cumsum([len(text) for text in answers.texts])
    count = max(1, int(np.searchsorted(sizes, megabytes * 1e6)))
    texts = [text.decode() for text in answers.texts[:count]]
    began = time.perf_counter()
    encoded = encoder.plain.encode_batch_fast(texts, add_special_tokens=False)
    seconds = time.perf_counter() - began
    runs = np.split(answers.ids, answers.ends[:count])[:count]
    same = [np.array_equal(one.ids, run) for one, run in zip(encoded, runs, strict=True)]
    return sum(len(one.ids) for one in encoded), seconds, ~np.array(same) & ~answers.respelled[:count]


def _answers(megabytes: float, source: str, encoder: Encoder) -> Answers:
    from gigatoken import Tokenizer

    fast = fast_tokenizer(encoder.plain, "measured")
    if fast is None:
        raise SystemExit("gigatoken does not load this tokenizer: there is nothing to compare")
    encode = Tokenizer.from_json(source).backend.encode
    chance, texts, runs, respelled = random.Random(4), [], [], []
    size = 0
    for text in _pieces():
        run = encode(text).astype(np.int32)
        other = chance.random() < RESPELLED
        if other:
            at = max(range(len(run)), key=lambda i: len(encoder.decode([int(run[i])])))
            letters = [i for letter in encoder.decode([int(run[at])]) for i in encoder.encode_plain(letter)]
            other = letters != [int(run[at])]  # a run of digits alone is spelled by letters as it is
            run = np.concatenate([run[:at], np.array(letters, np.int32), run[at + 1 :]])
        texts.append(text)
        runs.append(run)
        respelled.append(other)
        size += len(text)
        if size >= megabytes * 1e6:
            break
    return Answers(texts, np.concatenate(runs), np.cumsum([len(run) for run in runs]), np.array(respelled))


def _pieces() -> Iterator[bytes]:
    """Text of the packages and of Python itself, in pieces, none twice."""
    seen = set()
    for folder in dict.fromkeys([os.path.dirname(os.__file__), *sys.path]):
        for path in sorted(Path(folder).rglob("*")) if Path(folder).is_dir() and folder != str(ROOT) else ():
            if path.suffix not in (".py", ".md", ".rst", ".txt", ".pyi", ".h", ".js") and path.name != "METADATA":
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            for at in range(0, len(text), PIECE):
                piece = text[at : at + PIECE].encode()
                if len(piece) > PIECE // 4 and (key := hash(piece)) not in seen:
                    seen.add(key)
                    yield piece


def _qwen(folder: Path) -> Path:
    sys.path.insert(0, str(ROOT))
    from tests.qwen_files import qwen36_tokenizer_folder

    return qwen36_tokenizer_folder(folder)


if __name__ == "__main__":
    raise SystemExit(main())
