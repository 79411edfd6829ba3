"""A model hub on loopback with one repository; it has the parts of Hugging Face's protocol that a
download needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.loopback import Quiet, loopback


@contextmanager
def hub(files: dict[str, bytes], repo: str = "org/name", refuse: int = 0) -> Iterator[str]:
    """Serve a hub with one repository on loopback, and yield its address."""
    commit = "a" * 40

    class Handler(Quiet):
        def do_GET(self) -> None:  # The name is defined by http.server.
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            content = files.get(path.removeprefix(f"/{repo}/resolve/main/"))
            if path.startswith(f"/api/models/{repo}"):
                siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
                content = json.dumps({"id": repo, "sha": commit, "siblings": siblings}).encode()
            status = refuse or (404 if content is None else 200)
            self.send_response(status)
            if status == 200 and content is not None:
                self.send_header("X-Repo-Commit", commit)
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            else:
                content = b""
                self.send_header("X-Error-Code", "Other" if status == 500 else "RepoNotFound")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

    with loopback(Handler) as address:
        yield address


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
