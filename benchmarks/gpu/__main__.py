"""The project on a GPU beside the engine's own benchmark; results are kept by model and hardware.

usage: python benchmarks/gpu compare|shards|stops|facts|sweep --out FOLDER ...

`--python` is the interpreter that holds the engine (`reflash engines list` tells it), `--model` the folder of a model;
with `--load-format dummy` its config.json and tokenizer are enough. Nothing but loopback is used.
"""

from __future__ import annotations

import asyncio
import json
import logging
from argparse import ArgumentParser, Namespace
from pathlib import Path

from compare import compare
from facts import facts
from shards import shards
from stops import stops
from sweep import sweep

COMMANDS = {"compare": compare, "shards": shards, "stops": stops, "facts": facts, "sweep": sweep}


def main() -> None:
    """Run one question and keep its answer as OUT/QUESTION.json."""
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options.out.mkdir(parents=True, exist_ok=True)
    options.out = options.out.resolve()
    result = asyncio.run(COMMANDS[options.question](options))
    (options.out / f"{options.question}.json").write_text(json.dumps(result, indent=1) + "\n")
    if options.question != "facts":
        print(json.dumps(result, indent=1))


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("question", choices=COMMANDS)
    parser.add_argument("--out", type=Path, required=True)
    _add_engine(parser)
    asked = parser.add_argument_group("what is asked")
    asked.add_argument("--rows", type=int, default=1024)
    asked.add_argument("--tokens-in", type=int, default=230)
    asked.add_argument("--tokens-out", type=int, default=750)
    asked.add_argument("--steps", default="bench,flow", help="compare: in this order")
    asked.add_argument("--sampling", default='{"temperature": 1.0, "top_p": 1.0, "top_k": 0}')
    asked.add_argument("--bench-arg", action="append", default=[], help="one more argument of the engine's benchmark")
    asked.add_argument("--bench-env", action="append", default=[], help="NAME=VALUE in its environment")
    asked.add_argument("--shards", type=int, default=6)
    asked.add_argument("--shard-rows", type=int, default=450)
    asked.add_argument("--lengths", default="lognormal:210:0.9:1000", help="shards, stops: tokens of each answer")
    asked.add_argument("--bench-rows", type=int, default=0, help="shards: rows of the engine's benchmark before")
    asked.add_argument("--cases", default="SIGTERM,SIGKILL,success", help="stops: in this order")
    asked.add_argument("--point", action="append", default=[], help="sweep: one more point, key=value,key=value")
    asked.add_argument("--minutes", type=float, default=25.0, help="sweep: for all of it")
    asked.add_argument("--pilot-rows", type=int, default=None, help="sweep: rows answered to their end")
    asked.add_argument("--busy", action="store_true", help="facts: only what changes under load")
    asked.add_argument("--site", action="append", default=[], help="facts: a folder of packages more")
    return parser.parse_args()


def _add_engine(parser: ArgumentParser) -> None:
    engine = parser.add_argument_group("the engine")
    engine.add_argument("--kind", choices=("vllm", "sglang"), default="vllm")
    engine.add_argument("--url", help="a server that runs already, without a key: nothing is launched")
    engine.add_argument("--model", default="", help="the folder that the engine loads")
    engine.add_argument("--name", default="Qwen/Qwen3-8B")
    engine.add_argument("--tokenizer")
    engine.add_argument("--renderer", default="qwen3")
    engine.add_argument("--python", default="python3")
    engine.add_argument("--device", default="auto")
    engine.add_argument("--context", type=int, default=16384)
    engine.add_argument("--width", type=int, default=512)
    engine.add_argument("--memory", type=float, default=0.92)
    engine.add_argument("--load-format", default="dummy")
    engine.add_argument("--arg", action="append", default=[], help="one more argument of the server")
    engine.add_argument("--env", action="append", default=[], help="NAME=VALUE in the server's environment")


if __name__ == "__main__":
    main()
