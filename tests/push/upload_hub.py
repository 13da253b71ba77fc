"""As much of the Hub as an upload without Xet needs, on the loopback: sets, LFS objects, commits."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOKEN = "hf_planted_secret_0123456789"
COMMIT = "c" * 40


@dataclass
class Kept:
    """What the server holds, and what was done to it."""

    sets: dict[str, dict[str, bytes]] = field(default_factory=dict)  # files by the name of their set
    private: dict[str, bool] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)  # by their SHA-256
    stored: int = 0  # objects that came in
    breaks_after: int | None = None  # objects, before it answers 500


class Hub(BaseHTTPRequestHandler):
    """Everything under one token that may write."""

    protocol_version = "HTTP/1.1"
    kept: Kept

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def answer(self, code: int, body: object = None, **headers: str) -> None:
        raw = json.dumps({} if body is None else body).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            whole = b""
            while size := int(self.rfile.readline(), 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self) -> None:
        name, _, rest = self.path.partition("?")[0].removeprefix("/api/datasets/").partition("/tree/")
        name = name.partition("/revision/")[0]
        files = self.kept.sets.get(name)
        if files is None or self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(404 if files is None else 401, X_Error_Code="RepoNotFound")
        if rest:
            return self.answer(200, [self.entry(path, data) for path, data in files.items()])
        siblings = [{"rfilename": path} for path in files]
        told = {"id": name, "sha": COMMIT, "private": self.kept.private[name], "siblings": siblings}
        return self.answer(200, told)

    def entry(self, path: str, data: bytes) -> dict[str, Any]:
        return {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}

    def do_POST(self) -> None:
        body, path = self.body(), self.path.partition("?")[0]
        if path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": f"Invalid token {self.headers.get('Authorization')}"})
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path.endswith("/info/lfs/objects/batch"):
            return self.answer(
                200, {"transfer": "basic", "objects": [self.wanted(o) for o in json.loads(body)["objects"]]}
            )
        name = path.removeprefix("/api/datasets/").partition("/preupload/")[0].partition("/commit/")[0]
        if "/preupload/" in path:
            modes = [
                {"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(".parquet") else "regular"}
                for f in json.loads(body)["files"]
            ]
            return self.answer(200, {"files": [mode | {"shouldIgnore": False, "oid": None} for mode in modes]})
        for line in body.splitlines():
            self.take(self.kept.sets[name], json.loads(line))
        return self.answer(200, {"commitOid": COMMIT, "commitUrl": f"http://127.0.0.1/datasets/{name}/commit/{COMMIT}"})

    def create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else f"me/{asked['name']}"
        if name in self.kept.sets:
            return self.answer(409, {"url": f"http://127.0.0.1/datasets/{name}"})
        private = asked.get("private") or asked.get("visibility") == "private"
        self.kept.sets[name], self.kept.private[name] = {}, bool(private)
        return self.answer(200, {"url": f"http://127.0.0.1/datasets/{name}"})

    def wanted(self, one: dict[str, Any]) -> dict[str, Any]:
        if one["oid"] in self.kept.objects:
            return {"oid": one["oid"], "size": one["size"]}
        href = f"http://{self.headers['Host']}/objects/{one['oid']}"
        return {"oid": one["oid"], "size": one["size"], "actions": {"upload": {"href": href}}}

    def take(self, files: dict[str, bytes], line: dict[str, Any]) -> None:
        value = line["value"]
        if line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        if line["key"] == "lfsFile":
            files[value["path"]] = self.kept.objects[value["oid"]]

    def do_PUT(self) -> None:
        data = self.body()
        if self.kept.breaks_after is not None and self.kept.stored >= self.kept.breaks_after:
            return self.answer(400, {"error": "no more"})
        name = self.path.rpartition("/")[2]
        assert hashlib.sha256(data).hexdigest() == name
        self.kept.objects[name] = data
        self.kept.stored += 1
        return self.answer(200)


@contextmanager
def serving() -> Iterator[tuple[Kept, str]]:
    """A server with nothing on it, and its URL."""
    kept = Kept()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneHub", (Hub,), {"kept": kept}))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kept, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
