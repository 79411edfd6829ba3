"""Downloads of verifier models under way in this server: one thread each, seen by every tab."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from masis.errors import MasisError
from masis.integrations.local import model_files


@dataclass(frozen=True)
class Download:
    """How far a download has come. ``error`` says why it ended without the model, "" where it did not."""

    name: str
    done: int = 0
    total: int = 0
    file: str = ""
    finished: bool = False
    error: str = ""


class ModelDownloads:
    """The downloads of this process, the latest state of each by name. Safe to use from several threads."""

    def __init__(self, endpoint: str | None = None) -> None:
        """``endpoint`` is the address of another hub than the usual one."""
        self._endpoint = endpoint
        self._states: dict[str, Download] = {}
        self._stopped: set[str] = set()
        self._lock = threading.Lock()

    def state(self, name: str) -> Download | None:
        """Return how far the download of this name has come; None where there was none."""
        with self._lock:
            return self._states.get(name)

    def start(self, name: str) -> None:
        """Begin to download a model, unless that is under way. ``name`` is what stands behind ``local:``."""
        with self._lock:
            state = self._states.get(name)
            if state is not None and not state.finished:
                return
            self._states[name] = Download(name)
            self._stopped.discard(name)
        threading.Thread(target=self._run, args=(name,), name="model-download", daemon=True).start()

    def stop(self, name: str) -> None:
        """Stop a download; what has arrived is kept, and it can be taken up."""
        with self._lock:
            self._stopped.add(name)

    def _run(self, name: str) -> None:
        def show(step: model_files.Step) -> None:
            self._put(Download(name, step.done, step.total, step.file))

        try:
            model_files.download(name, show, endpoint=self._endpoint, cancelled=lambda: name in self._stopped)
        except MasisError as error:
            self._put(Download(name, finished=True, error=str(error)))
        except Exception as error:  # noqa: BLE001 (a thread's end must be seen on the page, not only in a log)
            self._put(Download(name, finished=True, error=f"{type(error).__name__}: {error}"))
        else:
            self._put(Download(name, finished=True))

    def _put(self, state: Download) -> None:
        with self._lock:
            self._states[state.name] = state


DOWNLOADS = ModelDownloads()
"""Those of this server."""
