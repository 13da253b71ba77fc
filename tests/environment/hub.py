"""A whole repository of the Hub on the loopback, `own/model`; run as a script, it prints what the audit reads of it.

Arguments: a folder with the repository's small files, the cache, the revision or "", and whether the Hub answers.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import orjson

from tests.engines import model_hub
from tests.engines.model_hub import COMMIT, Hub


class Whole(Hub):
    """With every file of a folder."""

    folder = Path()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        start, _, name = path.rpartition("/")
        file = self.folder / name
        if start in ("/own/model/resolve/main", f"/own/model/resolve/{COMMIT}") and file.is_file():
            return self.answer(200, file.read_bytes())
        return super().do_GET() if "/api/" in path else self.answer(404, b"{}")

    do_HEAD = do_GET


def main(folder: str, cache: str, revision: str, answers: str) -> None:
    """Serve it, or do not, and read it."""
    Whole.folder = Path(folder)
    model_hub.SIBLINGS.extend({"rfilename": path.name, "size": path.stat().st_size} for path in Path(folder).iterdir())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Whole)
    Thread(target=server.serve_forever, daemon=True).start()
    # Read when the library is imported.
    os.environ |= {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_CACHE": cache}
    from reflash.environment.collect.model import look_at_model

    model = look_at_model("own/model", revision or None, online=answers == "yes")
    sys.stdout.buffer.write(orjson.dumps(asdict(model)))


if __name__ == "__main__":
    main(*sys.argv[1:])
