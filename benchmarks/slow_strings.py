"""Time the parsing, marking and verifying of 100,000 hostile characters; print the slowest first.

    python benchmarks/slow_strings.py [--characters 100000] [--limit 5] [JOB ...]

Each job runs in its own process, which is stopped after about four times the limit of CPU time.
Exits 1 if a job takes longer than the limit in seconds. The units are those of hostile_texts.py and
some that were slow before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import NamedTuple

from benchmarks.hostile_texts import UNITS
from masis.audit.citations import audit_citations
from masis.audit.text.instructions import find_instructions
from masis.audit.text.language import detect_language
from masis.schema.audit import Claim
from masis.schema.case import Case, Evidence

MORE_UNITS = (
    *(
        "[1][2]",
        "[chunk_1/",
        "[1;",
        "[see ",
        "\\cite{",
        "(Smith, 2020; ",
        "Smith et al. (2020) ",
        "e.g. ",
        "a.b",
        "Dr. ",
    ),
    *(
        "1.5 million ",
        "$1,000 ",
        "50% ",
        "3-5 ",
        "not only ",
        "if ",
        "because ",
        "however, ",
        "ignore previous ",
        "<b>",
    ),
    *(
        "SYSTEM: ",
        "aGVsbG8g",
        "\u200b",
        "😀",
        "\u0301",
        "A B C. ",
        "1931 ",
        "increased by 5% ",
        "- a\n",
        "| a |\n",
        "> ",
    ),
)
SEEDS = (
    "The bridge is 120 metres long [1]. It was opened in 1931 [2]. ",
    "Aspirin reduces pain in adults [1], but ",
)


class Timing(NamedTuple):
    """The CPU time of one job on one text in seconds, or None if it was stopped."""

    job: str
    unit: str
    seconds: float | None


def _evidence(text: str = "The bridge is 120 metres long.") -> tuple[Evidence, ...]:
    return (Evidence(id="1", text=text), Evidence(id="2", text="It was opened in 1931."))


def parse(text: str) -> None:
    """Split the text into sentences and citations."""
    audit_citations(text, _evidence())


def lay_out_marks(text: str) -> None:
    """Lay out an answer for the page, with issues, citations and evidence marked."""
    from masis.views.marks import answer_pieces, reference_marks

    audit = audit_citations(text, _evidence())
    iteration = _Marked(text, audit)
    list(answer_pieces(iteration, reference_marks(iteration), []))  # type: ignore[arg-type]


class _Marked(NamedTuple):
    """The fields of an iteration that marking reads."""

    answer: str
    citation_audit: object
    claims: tuple[object, ...] = ()


def difference(text: str) -> None:
    """Compare two answers word by word."""
    from masis.views.diff import word_changes

    word_changes(text, text[: len(text) // 2] + "x " + text[len(text) // 2 :: 2])


def verify_claim(text: str) -> None:
    """Verify a long claim against ordinary evidence."""
    _verify(text, "The bridge is 120 metres long and was opened in 1931.")


def verify_against(text: str) -> None:
    """Verify an ordinary claim against a long piece of evidence."""
    _verify("The bridge is 120 metres long.", text)


def verify_alike(text: str) -> None:
    """Verify a long claim against itself."""
    _verify(text, text)


def _verify(claim: str, evidence: str) -> None:
    from masis.offline.roles.verifier import OfflineVerifier

    OfflineVerifier().verify([Claim(text=claim)], _evidence(evidence))


def audit(text: str) -> None:
    """Audit a case whose answer is the text, from citations to scores, one iteration."""
    from masis.api.audits import run_audit
    from masis.settings import Settings

    run_audit(
        Case(id="slow", query="How long is the bridge?", answer=text, evidence=_evidence()),
        Settings(max_iterations=1),
    )


JOBS: dict[str, Callable[[str], object]] = {
    "parse": parse,
    "mark": lay_out_marks,
    "difference": difference,
    "instructions": find_instructions,
    "language": detect_language,
    "verify claim": verify_claim,
    "verify against": verify_against,
    "verify alike": verify_alike,
    "audit": audit,
}


def _work(job: str, text: str, limit: int, answer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    JOBS[job]("The bridge is 12 metres long [1].")  # warm up: exclude loading
    started = time.process_time()
    JOBS[job](text)
    answer.send(time.process_time() - started)


def time_job(job: str, unit: str, characters: int, limit: float) -> Timing:
    """Run one job on one text in its own process."""
    text = (unit * (characters // len(unit) + 1))[:characters]
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_work, args=(job, text, int(limit * 4) + 5, there)
    )
    process.start()
    there.close()
    try:
        seconds: float | None = here.recv()
    except EOFError:
        seconds = None
    process.join()
    return Timing(job, unit, seconds)


def main() -> int:
    """Print the times of each job; return 1 if one took longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"one of: {', '.join(JOBS)}")
    parser.add_argument("--characters", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=5.0, metavar="SECONDS")
    args = parser.parse_args()
    for work in JOBS.values():
        work("The bridge is 12 metres long [1].")
    slow = 0
    for job in args.jobs or JOBS:
        timings = [
            time_job(job, unit, args.characters, args.limit)
            for unit in (*UNITS, *MORE_UNITS, *SEEDS)
        ]
        timings.sort(
            key=lambda timing: float("inf") if timing.seconds is None else timing.seconds,
            reverse=True,
        )
        slow += sum(timing.seconds is None or timing.seconds > args.limit for timing in timings)
        worst = ", ".join(
            f"{timing.unit!r} {_format_seconds(timing.seconds)}" for timing in timings[:6]
        )
        print(f"{job:15} {worst}", flush=True)
    return 1 if slow else 0


def _format_seconds(seconds: float | None) -> str:
    return "stopped" if seconds is None else f"{seconds:.2f} s"


if __name__ == "__main__":
    raise SystemExit(main())
