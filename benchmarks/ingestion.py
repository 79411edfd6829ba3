"""Whether 50 requests a second can be sent while reviewers work, and nothing of them is lost.

    python benchmarks/ingestion.py [--seconds 60] [--rate 50] [--reviewers 2]

Starts `masis ingest` on a new database. Eight clients send cases at the rate in all, a case a
request; reviewers list the queue, open a case and decide about it, again and again, in processes of
their own. Prints how long requests and reviewers waited, and compares what was acknowledged with
what is stored. Exits 1 where something is lost or doubled, or the rate was missed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path

from masis.schema.actor import Actor
from masis.schema.review import Decision
from masis.services import Workbench
from masis.services.arrivals.ingestion import new_token
from masis.services.records import CaseFilter
from tools.serving import free_port

CLIENTS = 8
TOKEN, DIGEST = new_token()


def a_case(name: str) -> dict[str, object]:
    """A case of about 2,000 characters."""
    return {
        "id": name,
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [1]. " * 20,
        "evidence": [{"id": "1", "text": "The bridge is 120 metres long. " * 40}],
    }


def send(base: str, name: str) -> tuple[int, float]:
    """Send one case; returns the status and how long it took, in seconds."""
    body = json.dumps(a_case(name)).encode()
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "idempotency-key": name,
    }
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{base}/v1/cases", body, headers), timeout=30
        ) as reply:
            return reply.status, time.perf_counter() - began
    except OSError as error:
        return getattr(error, "code", 0), time.perf_counter() - began


def review(path: Path, name: str, seconds: float, answer: Connection) -> None:
    """List, open and decide, as a reviewer does; reports decided cases, waits and errors."""
    workbench = Workbench.open(path)
    decided, waits, errors = 0, [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.perf_counter()
        try:
            rows = workbench.cases.find(CaseFilter(states=("new",), size=20)).rows
            if rows:
                view = workbench.cases.open(rows[hash((name, decided)) % len(rows)].id)
                workbench.reviews.submit(
                    Actor(name=name),
                    Decision(reviewer=name, case_id=view.case.id, run_id=None, verdict="approve"),
                )
                decided += 1
        except Exception as error:  # noqa: BLE001 (every error is a finding)
            errors.append(f"{type(error).__name__}: {error}")
        waits.append(time.perf_counter() - began)
        time.sleep(0.05)
    answer.send((decided, waits, errors))


def shown(waits: list[float]) -> str:
    """Return median, 99th of a hundred and worst, in milliseconds."""
    ordered = sorted(waits)
    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return (
        f"median {statistics.median(ordered) * 1e3:.0f}, 99% {late * 1e3:.0f}, worst"
        f" {ordered[-1] * 1e3:.0f} ms"
    )


def main() -> int:
    """Run it; 1 where something is lost, doubled or too slow."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--rate", type=float, default=50.0, help="requests a second, all clients together"
    )
    parser.add_argument("--reviewers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, sources, port = Path(folder) / "b.db", Path(folder) / "sources.toml", free_port()
        sources.write_text(
            f'[sources.load]\ntoken_sha256 = "{DIGEST}"\nrequests_per_minute = 600000\nburst ='
            " 10000\n",
            encoding="utf-8",
        )
        command = [
            sys.executable,
            "-m",
            "masis.cli",
            "ingest",
            "--port",
            str(port),
            "--sources",
            str(sources),
        ]
        server = subprocess.Popen([*command, "--db", str(path)], stderr=subprocess.DEVNULL)
        base = f"http://127.0.0.1:{port}"
        try:
            return measure(given, base, path)
        finally:
            server.terminate()
            server.wait()


def measure(given: argparse.Namespace, base: str, path: Path) -> int:
    """Send and review, then compare."""
    while True:
        try:
            urllib.request.urlopen(f"{base}/healthz", timeout=1)
            break
        except OSError:
            time.sleep(0.1)
    pipes = []
    for number in range(given.reviewers):
        here, there = multiprocessing.Pipe(duplex=False)
        args = (path, f"Reviewer {number}", given.seconds, there)
        multiprocessing.get_context("spawn").Process(target=review, args=args).start()
        pipes.append(here)
    results: list[tuple[str, int, float]] = []
    total, begun = int(given.seconds * given.rate), time.monotonic()

    def work(first: int) -> None:
        for number in range(first, total, CLIENTS):
            time.sleep(max(0.0, begun + number / given.rate - time.monotonic()))
            results.append((f"case-{number}", *send(base, f"case-{number}")))

    threads = [threading.Thread(target=work, args=(each,)) for each in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    reviews = [pipe.recv() for pipe in pipes]
    workbench = Workbench.open(path)
    while workbench.store.inbox.waiting(1):
        time.sleep(0.1)
    read_after = time.monotonic() - begun - took
    acknowledged = {name for name, status, _ in results if status == 202}
    stored = [case.id for case in workbench.store.cases.iterate()]
    lost, doubled = acknowledged - set(stored), len(stored) - len(set(stored))
    errors = [error for *_, found in reviews for error in found]
    decided = sum(each for each, *_ in reviews)
    log = workbench.store.decisions.verify()
    print(
        f"{len(results)} requests in {took:.1f} s ({len(results) / took:.1f} a second), "
        f"{len(acknowledged)} acknowledged"
    )
    print(
        f"requests: {shown([wait for *_, wait in results])}; the last was read"
        f" {max(0.0, read_after):.1f} s later"
    )
    print(
        f"{given.reviewers} reviewers: {decided} decisions,"
        f" {shown([w for _, ws, _ in reviews for w in ws])}"
    )
    print(
        f"lost {len(lost)}, doubled {doubled}, log of {log.length} entries"
        f" {'intact' if log.intact else 'BROKEN'}"
    )
    for error in sorted(set(errors))[:5]:
        print(f"reviewers met {errors.count(error)} of: {error}")
    slow = len(results) / took < given.rate * 0.98
    return (
        1
        if lost or doubled or errors or slow or log.length != decided or len(acknowledged) < total
        else 0
    )


if __name__ == "__main__":
    raise SystemExit(main())
