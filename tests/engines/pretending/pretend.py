"""A server that pretends to be vLLM or SGLang: it takes their arguments, answers their routes, and fails as it is told.

It runs in an interpreter of its own that knows nothing of Reflash. `PRETEND` in its environment says what it does:
well, crash (at once, as an engine of many processes does), healthy (says so, and dies at its first request), silent
(never listens), deaf (does not heed SIGTERM), taken (says that its port is taken, the first time in a folder).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODE = os.environ.get("PRETEND", "well")
DEEP_CRASH = """\
(EngineCore pid=7) ERROR File "core.py", line 1
(EngineCore pid=7) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.
(APIServer pid=6) RuntimeError: Engine core initialization failed. See root cause above."""


def flag(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def serve(kind: str, key: str) -> None:
    """Answer at the port of the command line until told to stop."""
    say(f"pretending to be {kind}")
    # Workers of an engine may lead sessions of their own.
    worker = [sys.executable, "-c", "import time; time.sleep(300)"]
    subprocess.Popen(worker)
    subprocess.Popen(worker, start_new_session=True)
    _misbehave()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def say(self, body: Any, status: int = 200) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def known(self) -> bool:
            return self.headers.get("Authorization") == f"Bearer {key}"

        def do_GET(self) -> None:
            pages = {
                "/health": {},
                "/v1/models": {"data": [{"id": "pretended", "max_model_len": 512}]},
                "/version": {"version": "9.9"},
                "/server_info": {"version": "9.9", "max_total_num_tokens": 10},
            }
            if kind == "vllm":
                del pages["/server_info"]
            if not self.known() and self.path != "/health":
                self.say({"error": "who are you"}, 401)
            else:
                self.say(pages.get(self.path, {}), 200 if self.path in pages else 404)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.known():
                self.say({"error": "who are you"}, 401)
            elif MODE == "healthy":
                say("ModuleNotFoundError: No module named 'flashinfer'")
                os._exit(1)
            else:
                self.say(answer(kind, asked))

    ThreadingHTTPServer((flag("--host"), int(flag("--port"))), Handler).serve_forever()


def answer(kind: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The prompt's ids, cut to the budget."""
    ids = asked["prompt"] if kind == "vllm" else asked["input_ids"]
    kept = ids[: asked["max_tokens"] if kind == "vllm" else asked["sampling_params"]["max_new_tokens"]]
    usage = {"prompt_tokens": len(ids), "completion_tokens": len(kept)}
    if kind == "vllm":
        choice = {"index": 0, "text": "", "finish_reason": "length", "token_ids": kept}
        return {"choices": [choice], "usage": usage}
    return {"text": "", "output_ids": kept, "meta_info": {"finish_reason": {"type": "length"}, **usage}}


def _misbehave() -> None:
    if MODE == "crash":
        say(DEEP_CRASH)
        sys.exit(1)
    if MODE == "silent":
        time.sleep(300)
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "taken":
        first = Path(os.environ["PRETEND_FOLDER"], "was taken")
        if not first.exists():
            first.write_text(flag("--port"))
            say("OSError: [Errno 98] Address already in use")
            sys.exit(1)
