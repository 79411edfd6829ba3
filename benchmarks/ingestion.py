"""Check that the server accepts 50 requests a second without loss while reviewers work.

    python benchmarks/ingestion.py [--seconds 60] [--rate 50] [--reviewers 2]

Starts `masis ingest` on a new database. Eight clients together send cases at the given rate, one
case per request. Reviewers, each in its own process, repeatedly list the queue, open a case and
decide it. Prints how long requests and reviewers waited, and compares the acknowledged cases with
the stored ones. Exits 1 if a case is lost or duplicated, or if the rate was missed.
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


def make_case(name: str) -> dict[str, object]:
    """Return a case of about 2,000 characters."""
    return {
        "id": name,
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [1]. " * 20,
        "evidence": [{"id": "1", "text": "The bridge is 120 metres long. " * 40}],
    }


def send(base: str, name: str) -> tuple[int, float]:
    """Send one case and return the HTTP status and the duration in seconds."""
    body = json.dumps(make_case(name)).encode()
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "idempotency-key": name,
    }
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{base}/v1/cases", body, headers), timeout=30
        ) as reply:
            return reply.status, time.perf_counter() - started
    except OSError as error:
        return getattr(error, "code", 0), time.perf_counter() - started


def review(path: Path, name: str, seconds: float, answer: Connection) -> None:
    """List, open and decide cases as a reviewer does; send back the count, waits and errors."""
    workbench = Workbench.open(path)
    decided, waits, errors = 0, [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        try:
            rows = workbench.cases.find(CaseFilter(states=("new",), size=20)).rows
            if rows:
                view = workbench.cases.open(rows[hash((name, decided)) % len(rows)].id)
                workbench.reviews.submit(
                    Actor(name=name),
                    Decision(reviewer=name, case_id=view.case.id, run_id=None, verdict="approve"),
                )
                decided += 1
        except Exception as error:  # noqa: BLE001 (the benchmark reports every error)
            errors.append(f"{type(error).__name__}: {error}")
        waits.append(time.perf_counter() - started)
        time.sleep(0.05)
    answer.send((decided, waits, errors))


def format_waits(waits: list[float]) -> str:
    """Format the median, 99th percentile and maximum in milliseconds."""
    ordered = sorted(waits)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return (
        f"median {statistics.median(ordered) * 1e3:.0f}, p99 {p99 * 1e3:.0f}, max"
        f" {ordered[-1] * 1e3:.0f} ms"
    )


def main() -> int:
    """Run the benchmark; return 1 if a case is lost or duplicated, or the rate was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--rate", type=float, default=50.0, help="requests per second from all clients together"
    )
    parser.add_argument("--reviewers", type=int, default=2)
    args = parser.parse_args()
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
            return measure(args, base, path)
        finally:
            server.terminate()
            server.wait()


def measure(args: argparse.Namespace, base: str, path: Path) -> int:
    """Send and review cases, then compare the acknowledged ones with the stored ones."""
    while True:
        try:
            urllib.request.urlopen(f"{base}/healthz", timeout=1)
            break
        except OSError:
            time.sleep(0.1)
    pipes = []
    for number in range(args.reviewers):
        here, there = multiprocessing.Pipe(duplex=False)
        task = (path, f"Reviewer {number}", args.seconds, there)
        multiprocessing.get_context("spawn").Process(target=review, args=task).start()
        pipes.append(here)
    results: list[tuple[str, int, float]] = []
    total, started = int(args.seconds * args.rate), time.monotonic()

    def work(first: int) -> None:
        for number in range(first, total, CLIENTS):
            time.sleep(max(0.0, started + number / args.rate - time.monotonic()))
            results.append((f"case-{number}", *send(base, f"case-{number}")))

    threads = [threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    duration = time.monotonic() - started
    reviews = [pipe.recv() for pipe in pipes]
    workbench = Workbench.open(path)
    while workbench.store.inbox.waiting(1):
        time.sleep(0.1)
    read_after = time.monotonic() - started - duration
    acknowledged = {name for name, status, _ in results if status == 202}
    stored = [case.id for case in workbench.store.cases.iterate()]
    lost, duplicated = acknowledged - set(stored), len(stored) - len(set(stored))
    errors = [error for *_, review_errors in reviews for error in review_errors]
    decided = sum(count for count, *_ in reviews)
    log = workbench.store.decisions.verify()
    print(
        f"{len(results)} requests in {duration:.1f} s ({len(results) / duration:.1f} per second), "
        f"{len(acknowledged)} acknowledged"
    )
    print(
        f"requests: {format_waits([wait for *_, wait in results])}; inbox empty"
        f" {max(0.0, read_after):.1f} s later"
    )
    print(
        f"{args.reviewers} reviewers: {decided} decisions,"
        f" {format_waits([w for _, ws, _ in reviews for w in ws])}"
    )
    print(
        f"lost {len(lost)}, duplicated {duplicated}, log of {log.length} entries"
        f" {'intact' if log.intact else 'BROKEN'}"
    )
    for error in sorted(set(errors))[:5]:
        print(f"reviewers got this error {errors.count(error)} times: {error}")
    slow = len(results) / duration < args.rate * 0.98
    return (
        1
        if lost
        or duplicated
        or errors
        or slow
        or log.length != decided
        or len(acknowledged) < total
        else 0
    )


if __name__ == "__main__":
    raise SystemExit(main())
