"""The processor time that 100,000 hostile characters take to be parsed, marked and verified; the
worst come first.

    python benchmarks/slow_strings.py [--characters 100000] [--limit 5] [JOB ...]

Each job runs in a process of its own that is ended after four times the limit. Exits 1 where one
takes longer than the limit in seconds. The units are those of hostile_texts.py and some that were
found to be slow.
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


class Took(NamedTuple):
    """What one job took with one text, in seconds of processor time; None where it was ended."""

    job: str
    unit: str
    seconds: float | None


def _evidence(text: str = "The bridge is 120 metres long.") -> tuple[Evidence, ...]:
    return (Evidence(id="1", text=text), Evidence(id="2", text="It was opened in 1931."))


def parse(text: str) -> None:
    """Split into sentences and citations."""
    audit_citations(text, _evidence())


def mark(text: str) -> None:
    """Lay out an answer for the page, its issues, citations and evidence marked."""
    from masis.audit.citations import audit_citations as audited
    from masis.schema.run import Iteration
    from masis.views.marks import answer_pieces, reference_marks

    del Iteration
    audit = audited(text, _evidence())
    stand_in = _Marked(text, audit)
    list(answer_pieces(stand_in, reference_marks(stand_in), []))  # type: ignore[arg-type]


class _Marked(NamedTuple):
    """What marking reads of an iteration."""

    answer: str
    citation_audit: object
    claims: tuple[object, ...] = ()


def difference(text: str) -> None:
    """Compare two answers word by word."""
    from masis.views.diff import word_changes

    word_changes(text, text[: len(text) // 2] + "x " + text[len(text) // 2 :: 2])


def verify_claim(text: str) -> None:
    """Verify one long claim against ordinary evidence."""
    _verify(text, "The bridge is 120 metres long and was opened in 1931.")


def verify_against(text: str) -> None:
    """Verify an ordinary claim against one long piece of evidence."""
    _verify("The bridge is 120 metres long.", text)


def verify_alike(text: str) -> None:
    """Verify one long claim against itself."""
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
    "mark": mark,
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
    JOBS[job]("The bridge is 12 metres long [1].")  # what is loaded once is not counted
    began = time.process_time()
    JOBS[job](text)
    answer.send(time.process_time() - began)


def took(job: str, unit: str, characters: int, limit: float) -> Took:
    """Run one job on one text in a process of its own."""
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
    return Took(job, unit, seconds)


def main() -> int:
    """Print what each job took; 1 where one took longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of: {', '.join(JOBS)}")
    parser.add_argument("--characters", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=5.0, metavar="SECONDS")
    given = parser.parse_args()
    for each in JOBS.values():
        each("The bridge is 12 metres long [1].")
    slow = 0
    for job in given.jobs or JOBS:
        found = [
            took(job, unit, given.characters, given.limit) for unit in (*UNITS, *MORE_UNITS, *SEEDS)
        ]
        found.sort(
            key=lambda each: float("inf") if each.seconds is None else each.seconds, reverse=True
        )
        slow += sum(each.seconds is None or each.seconds > given.limit for each in found)
        worst = ", ".join(f"{each.unit!r} {_shown(each.seconds)}" for each in found[:6])
        print(f"{job:15} {worst}", flush=True)
    return 1 if slow else 0


def _shown(seconds: float | None) -> str:
    return "ended" if seconds is None else f"{seconds:.2f} s"


if __name__ == "__main__":
    raise SystemExit(main())
