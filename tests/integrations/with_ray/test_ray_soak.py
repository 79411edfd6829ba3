"""Long trials of audits on Ray: a node that is killed, a driver that is killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from masis import run_audit
from masis.datasets.lake import open_lake, outcome_of
from masis.datasets.loading import read_cases
from masis.integrations.ray import RayAudit, Totals, audit_on_ray
from masis.schema.run import Run
from masis.settings import Settings
from tests.cli.running import case, lines
from tests.integrations.with_ray.conftest import QUIET, ROOT, WORKERS
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


def write_cases(file: Path, number: int) -> Path:
    """An input of that many cases, each of which takes a fifth of a second in workers that know the
    poison.
    """
    file.write_bytes(
        lines(*(case(f"slow-{n}", query=f"How long is bridge {n}?") for n in range(number)))
    )
    return file


def result(out: Path) -> dict[str, tuple[Any, ...]]:
    """What an audit came to, without what differs from run to run; each case stands there once."""
    found = open_lake(str(out)).to_table().to_pylist()
    assert len({row["case_id"] for row in found}) == len(found)
    return {
        row["case_id"]: compare_key(row["outcome"], Run.model_validate_json(row["run_json"]))
        for row in found
    }


def audit_undisturbed(file: Path) -> dict[str, tuple[Any, ...]]:
    """What the audit of a file comes to where nothing dies."""
    runs = {case.id: run_audit(case) for case in read_cases(file)}
    return {name: compare_key(outcome_of(run), run) for name, run in runs.items()}


def compare_key(outcome: str, run: Run) -> tuple[Any, ...]:
    return (
        outcome,
        run.review_reasons,
        run.final_quality_score,
        run.final_answer,
        run.total_iterations,
    )


@contextlib.contextmanager
def two_nodes(folder: str) -> Iterator[Cluster]:
    """A cluster of two nodes with one core each; the second may be killed."""
    made = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=made | {"temp_dir": folder})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        ray.init(address=cluster.address, runtime_env=WORKERS, **QUIET)
        until(lambda: ray.cluster_resources().get("CPU") == 2, "both nodes are there")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.soak(full=10)
def test_a_killed_node_doesnt_change_the_output(tmp_path: Path, folder: str, rounds: int) -> None:
    file = write_cases(tmp_path / "cases.jsonl", 400)
    with two_nodes(folder) as cluster:
        expected = audit_undisturbed(file)
        for trial in range(rounds):
            out = tmp_path / f"out-{trial}"
            after = random.Random(trial).randrange(5, 200)
            killing = threading.Event()

            def kill_node(
                totals: Totals, total: int, before: int, after: int = after, once: Any = killing
            ) -> bool:
                if totals.cases >= after and not once.is_set():
                    once.set()
                    [node] = cluster.worker_nodes
                    cluster.remove_node(node, allow_graceful=False)
                return False

            assert audit_on_ray(
                RayAudit(str(file), str(out), Settings(), chunk=5), kill_node
            ).complete
            assert killing.is_set()
            assert result(out) == expected
            cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
            until(lambda: ray.cluster_resources().get("CPU") == 2, "the node is back")


@pytest.mark.soak(full=10)
def test_a_killed_driver_can_be_rerun_and_leaves_no_process(tmp_path: Path, rounds: int) -> None:
    file = write_cases(tmp_path / "cases.jsonl", 1000)
    command = [
        sys.executable,
        "-m",
        "masis.cli",
        "audit",
        str(file),
        "--engine",
        "ray",
        "--concurrency",
        "2",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp"}

    def start_driver(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, "--out", str(out)],
            env=environment,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )

    expected = audit_undisturbed(file)
    for trial in range(rounds):
        out = tmp_path / f"out-{trial}"
        before = kill_driver(start_driver(out), out, random.Random(trial).randrange(1, 10))
        assert start_driver(out).wait(240) == 0
        assert result(out) == expected
        marked = {f"{path.parent.name}-{path.name[:6]}" for path in out.glob("_masis/done/*/*")}
        again = [
            path
            for path, at in before.items()
            if path.stat().st_mtime_ns != at and path.stem in marked
        ]
        assert len(again) <= 2  # the shards in progress, one for each worker


def kill_driver(driver: subprocess.Popen[bytes], out: Path, shards: int) -> dict[Path, int]:
    """Kill a driver once so many shards are written; returns the files, with the time they were
    written.
    """
    until(lambda: len(list(out.glob("_masis/done/*/*"))) >= shards, "a shard is written", 120)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    # Ray's own helpers go up to two minutes later; what audits must be gone before the command is
    # given again.
    until(lambda: not alive(driver.pid, "MapWorker"), "the workers end with the driver", 60)
    return {path: path.stat().st_mtime_ns for path in out.glob("outcome=*/*.parquet")}


def alive(session: int, name: str) -> list[int]:
    """The processes of a session that still run and have a name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            state, _, _, owner = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            named = name in (process / "cmdline").read_text()
            if int(owner) == session and state.strip() != "Z" and named:
                found.append(int(process.name))
    return found
