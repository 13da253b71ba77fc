"""As much of the Hub as one model needs, on the loopback; run as a script, it says what is read of `own/model`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "b" * 40
SIBLINGS = [
    {"rfilename": "config.json", "size": 10},
    {"rfilename": "model-00001-of-00002.safetensors", "size": 7_000_000_000},
    {"rfilename": "model-00002-of-00002.safetensors", "size": 9_000_000_000},
    {"rfilename": "consolidated.safetensors", "size": 16_000_000_000},
]


class Hub(BaseHTTPRequestHandler):
    """One model, `own/model`."""

    config = b"{}"

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/own/model"):
            return self.answer(200, json.dumps({"id": "own/model", "sha": COMMIT, "siblings": SIBLINGS}).encode())
        if path == "/own/model/resolve/main/config.json":
            return self.answer(200, self.config)
        return self.answer(404, b"{}")

    do_HEAD = do_GET

    def answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        tag = f'"{hashlib.sha1(body).hexdigest()}"'
        for name, value in {"Content-Length": str(len(body)), "ETag": tag, "X-Repo-Commit": COMMIT}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main() -> None:
    """Serve the config that is given, read the model from there, print its size and where that is from."""
    Hub.config = sys.argv[1].encode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as cache:
        # Read when the library is imported.
        os.environ |= {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_CACHE": cache}
        from reflash.engines.serve.weights import read_model

        model = read_model("own/model", None)
    sys.stdout.write(json.dumps([model.local, model.facts.weights, model.facts.weights_from]))


if __name__ == "__main__":
    main()
