"""llama.cpp as a server in this process: `python -m reflash.engines.llamacpp_server --model FILE ...`.

It prints one line of JSON, `{"url": ..., "api_key": ...}`, when the model is loaded, and lives until its standard input
ends or its parent dies. It listens on loopback alone, at a port of the system's choice. What llama.cpp logs goes to
standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from reflash.engines.linux import die_with_parent

QUIET = 2  # llama.cpp's verbosity: errors and warnings; from 3 on every request leaves lines in the log


def main() -> None:
    """Serve until standard input ends."""
    args = _arguments()
    die_with_parent(args.parent)
    out = _private_stdout()
    key = secrets.token_urlsafe(32)
    server = _serve(args, key)
    print(json.dumps({"url": server.listening_address, "api_key": key}), file=out, flush=True)
    out.close()
    sys.stdin.buffer.read()
    # The server's own end waits for answers that nobody reads any more.
    os._exit(0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="a .gguf file")
    parser.add_argument("--width", type=int, required=True, help="sequences decoded together")
    parser.add_argument("--context", type=int, required=True, help="tokens of one sequence")
    parser.add_argument("--threads", type=int, required=True, help="CPU threads")
    parser.add_argument("--parent", type=int, required=True, help="process id that this one must not outlive")
    return parser.parse_args()


def _private_stdout() -> Any:
    """The standard output for our line alone: whatever C++ prints there from now on goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return out


def _serve(args: argparse.Namespace, key: str) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(args.model)
    params.n_parallel = args.width
    params.n_ctx = args.width * args.context
    params.kv_unified = False  # each sequence has its own share of the cache, whatever the others do
    params.cache_ram_mib = 0  # prompts are not kept aside: 8 GiB by default
    params.cache_idle_slots = False  # needs the above
    params.fit_params = False  # take the context that was asked for, or fail
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.verbosity = QUIET
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
