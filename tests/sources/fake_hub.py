"""As much of the Hub as one data set needs, on the loopback; run as a script, it reads the names given to it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "a" * 40
LINES = [json.dumps({"id": f"r{n}", "prompt": f"Question {n}?", "response": "A"}) + "\n" for n in range(5)]
FILES = {"train.jsonl": "".join(LINES).encode(), "test.jsonl": LINES[0].encode()}


class Hub(BaseHTTPRequestHandler):
    """One set, `own/set`, of two files."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        listed = [{"type": "file", "path": name, "size": len(body), "oid": name} for name, body in FILES.items()]
        if path.startswith("/api/datasets/own/set/tree/"):
            return self.answer(200, json.dumps(listed).encode())
        if path.startswith("/api/datasets/own/set"):
            siblings = [{"rfilename": name} for name in FILES]
            return self.answer(200, json.dumps({"id": "own/set", "sha": COMMIT, "siblings": siblings}).encode())
        name = path.rpartition("/")[2]
        if path.startswith("/datasets/own/set/resolve/") and name in FILES:
            return self.file(FILES[name])
        return self.answer(404, b"{}", X_Error_Code="EntryNotFound", X_Repo_Commit=COMMIT)

    do_HEAD = do_GET

    def file(self, body: bytes) -> None:
        headers = {"ETag": f'"{hashlib.sha1(body).hexdigest()}"', "X_Repo_Commit": COMMIT}
        wanted = self.headers.get("Range")
        if wanted is None:
            return self.answer(200, body, **headers)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = body[int(first) : int(last or len(body)) + 1]
        end = int(first) + len(part) - 1
        return self.answer(206, part, Content_Range=f"bytes {first}-{end}/{len(body)}", **headers)


def main(names: list[str]) -> None:
    """Print what each name gives, one JSON object a line."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"  # read when the Hub's client is imported
    with tempfile.TemporaryDirectory() as home:
        os.environ["HF_HOME"] = home
        from reflash.config.source import SourceConfig
        from reflash.errors import SourceError
        from reflash.sources.open import open_source, rows

        for name in names:
            try:
                source = open_source(SourceConfig(path=name))
                ids = [row.conversation and row.conversation.id for row in rows(source)]
                found = {"ids": ids, "files": source.files, "notes": source.notes, "digest": source.digest()}
            except SourceError as error:
                found = {"error": str(error)}
            sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
