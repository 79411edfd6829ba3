"""A hub of models on loopback, with one repository: as much of the Hugging Face hub's protocol as a download needs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def hub(files: dict[str, bytes], repo: str = "org/name", refuse: int = 0) -> Iterator[str]:
    """A hub with one repository, on loopback."""
    commit = "a" * 40

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is http.server's
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            name = path.removeprefix(f"/{repo}/resolve/main/")
            if refuse:
                self.send_response(refuse)
                self.send_header("X-Error-Code", "RepoNotFound" if refuse == 401 else "Other")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if path.startswith(f"/api/models/{repo}"):
                siblings = [{"rfilename": each, "size": len(content)} for each, content in files.items()]
                content = json.dumps({"id": repo, "sha": commit, "siblings": siblings}).encode()
            elif name in files:
                content = files[name]
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Repo-Commit", commit)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
