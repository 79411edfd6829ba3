"""How fast the store is with 100,000 cases, and whether concurrent writers lose anything.

    python benchmarks/store.py [--cases 100000] [--keep FOLDER]

Prints milliseconds for what the queue and the desk do: median and worst of the repeats by the clock, the median of this
process's own time (on a busy machine the better figure), and the target, which the clock must meet.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import multiprocessing
import random
import resource
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.datasets.archive import write_archive
from masis.schema.audit import (
    CitationAudit,
    Claim,
    ClaimCheck,
    ClaimReport,
    Critique,
    Evaluation,
    JudgedBy,
    Score,
    Sentence,
)
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import Event, Iteration, ReviewReason, Run, Versions
from masis.store import CaseFilter, Store

VOCABULARY = 20_000
"""Words there are; the n-th is drawn with a weight of 1/n, as in a language."""

FIELDS = ("Medicine", "Law", "Engineering", "History", "Strategy", "Documentation")
REPEATS = 7
JUDGE = JudgedBy(model="offline", version="1")


def cases(count: int) -> Iterator[Case]:
    """Small cases of made-up words: three chunks, four sentences."""
    draw = random.Random(7)
    words = [_word(number) for number in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / (number + 1) for number in range(VOCABULARY)))
    for number in range(count):
        text = [" ".join(draw.choices(words, cum_weights=weights, k=12)) for _ in range(7)]
        yield Case.model_validate(
            {
                "id": f"case-{number:06}",
                "query": f"What about {text[0]}?",
                "answer": ". ".join(f"{sentence} [{index}]" for index, sentence in enumerate(text[1:5], 1)) + ".",
                "evidence": [{"id": str(index), "text": sentence} for index, sentence in enumerate(text[4:], 1)],
                "metadata": {"field": draw.choice(FIELDS), "dataset": f"set-{number % 4}"},
            }
        )


def _word(number: int) -> str:
    """A word that looks like one: the frequent ones are short."""
    syllables = ("ri", "ver", "ta", "lo", "men", "su", "pa", "ne", "ki", "do")
    return "".join(syllables[int(digit)] for digit in str(number + 10))


def a_run(case: Case, draw: random.Random, sentences: int) -> Run:
    """A run of two iterations with a claim a sentence."""
    answer = case.answer or ""
    bad = draw.random() < 0.3
    iterations = tuple(_iteration(number, answer, sentences, draw, bad and number == 1) for number in (1, 2))
    return Run(
        id=f"run-{case.id}",
        case_id=case.id,
        case_digest=case.digest(),
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:01.000Z",
        models=dict.fromkeys(("drafter", "verifier", "critic", "reviser", "evaluator"), "offline"),
        settings={"max_iterations": 3},
        versions=Versions(app="0.1.0", rubric="1", offline_weights="1"),
        iterations=iterations,
        best=1,
        final_answer=answer,
        final_quality_score=iterations[1].quality_score,
        improvement_percentage=None,
        total_iterations=2,
        converged=True,
        termination_reason="convergence",
        needs_review=bad,
        review_reasons=(ReviewReason(code="low_confidence", message="Confidence is low."),) if bad else (),
    )


def _iteration(number: int, answer: str, sentences: int, draw: random.Random, bad: bool) -> Iteration:
    quality, confidence, overall = (round(draw.random(), 4) for _ in range(3))
    text = answer[:80]
    return Iteration(
        iteration_number=number,
        answer=answer,
        citation_audit=CitationAudit(
            mode="standard",
            citations=(),
            sentences=tuple(
                Sentence(start=0, end=80, text=text, citation_ids=("1",), status="cited", why="cites 1")
                for _ in range(sentences)
            ),
            invalid_citations=("9",) if bad else (),
            uncited_claims=(text,) if draw.random() < 0.4 else (),
            hallucination_detected=bad,
            needs_retry=bad,
            penalty_factor=0.5 if bad else 1.0,
        ),
        claims=tuple(
            ClaimCheck(claim=Claim(text=text, start=0, end=80), verdict="supported", support=0.9, confidence=0.8)
            for _ in range(sentences)
        ),
        claim_report=ClaimReport(confidence=0.9, facts_checked=sentences, facts_verified=sentences),
        issues=(),
        critique=Critique(
            confidence=confidence,
            hallucination_detected=bad,
            needs_retry=bad,
            overall_quality_score=quality,
            critique_confidence=0.8,
            critique_reasoning=text,
            has_major_issues=bad,
            scores=(Score(name="confidence", raw=draw.random(), value=confidence),),
            judged_by=JUDGE,
        ),
        evaluation=Evaluation(
            faithfulness=overall,
            relevance=overall,
            completeness=overall,
            reasoning_quality=overall,
            overall_score=overall,
            judged_by=JUDGE,
        ),
        quality_score=quality,
        improvement_delta=None,
    )


def timed(name: str, work: Callable[[], object], target_ms: float) -> bool:
    """Print median and worst of the repeats beside the target; the first is warm-up."""
    work()
    spent: list[float] = []
    own: list[float] = []
    for _ in range(REPEATS):
        began, began_own = time.perf_counter(), time.process_time()
        work()
        spent.append((time.perf_counter() - began) * 1000)
        own.append((time.process_time() - began_own) * 1000)
    kept = statistics.median(spent) <= target_ms
    print(
        f"{name:<48} {statistics.median(spent):8.1f} {max(spent):8.1f} {statistics.median(own):8.1f}   {target_ms:5.0f}"
        f"  {'' if kept else 'MISSED'}"
    )
    return kept


def fill(store: Store, count: int) -> None:
    """Import, then a short run for all but a tenth and a decision for a quarter of them."""
    began, began_own = time.perf_counter(), time.process_time()
    store.cases.add_many(cases(count))
    spent, own = time.perf_counter() - began, time.process_time() - began_own
    print(f"making and importing {count:,} small cases: {spent:.1f} s, {own:.1f} s of it its own")
    draw = random.Random(11)
    began, began_own, batch = time.perf_counter(), time.process_time(), 500
    todo = (case for index, case in enumerate(cases(count)) if index % 10)
    done = 0
    while some := list(itertools.islice(todo, batch)):
        done += len(some)
        with store.transaction():
            for case in some:
                store.runs.finish(a_run(case, draw, sentences=4))
                if draw.random() < 0.25:
                    store.decisions.append(
                        Decision(
                            reviewer=draw.choice(("Ada", "Grace")),
                            case_id=case.id,
                            run_id=f"run-{case.id}",
                            verdict="approve",
                        )
                    )
    spent, own = time.perf_counter() - began, time.process_time() - began_own
    print(f"making and finishing {done:,} runs, deciding a quarter: {spent:.1f} s, {own:.1f} s of it its own")


def questions(store: Store, count: int) -> list[tuple[str, Callable[[], object], float]]:
    """What is asked of the store, with its target in milliseconds."""
    search = store.cases.search

    def queue(**wanted: Any) -> Callable[[], object]:
        return lambda: search(CaseFilter(**wanted))

    return [
        ("queue, most likely faulty first", queue(), 100),
        ("queue, must look", queue(tiers=("must_look",)), 100),
        ("queue, must look of what needs review", queue(states=("needs_review",), tiers=("must_look",)), 100),
        ("queue, most disagreement first", queue(order="disagreement"), 100),
        ("queue, what needs review", queue(states=("needs_review",)), 100),
        ("queue, least confident", queue(order="least_confident"), 100),
        ("queue, newest", queue(order="newest"), 100),
        ("queue, random", queue(order="random", seed=3), 100),
        ("filter: field", queue(fields=("Law",)), 100),
        ("filter: field, dataset, state", queue(fields=("Law",), datasets=("set-1",), states=("approved",)), 100),
        ("filter: flag", queue(flags=("uncited",)), 100),
        ("filter: flag, state", queue(flags=("invalid_reference",), states=("needs_review",)), 100),
        ("filter: model", queue(models=("offline",)), 100),
        ("filter: reviewer", queue(reviewers=("Ada",)), 100),
        ("filter: score range", queue(quality_from=0.2, quality_to=0.6), 100),
        ("filter: score range, random order", queue(quality_from=0.2, quality_to=0.6, order="random"), 100),
        (
            "filter: everything at once",
            queue(
                fields=("Law", "Medicine"), flags=("uncited",), quality_from=0.1, states=("needs_review",), text="verri"
            ),
            100,
        ),
        ("search: a word of most cases", queue(text="verri"), 100),
        ("search: two words", queue(text="verri verver"), 100),
        ("search: a word of a few", queue(text=_word(3_000)), 100),
        ("search: three letters most cases have", queue(text="ver"), 100),
        ("search: four letters most cases have", queue(text="verr"), 100),
        ("search: six letters most cases have", queue(text="verrir"), 100),
        ("search: a word and three letters", queue(text="verri lom", order="newest"), 100),
        ("search: one case by its id", queue(text="case-000777"), 100),
        ("search: nothing found", queue(text="zebra"), 100),
        ("page 1,000 of the queue", queue(page=1000), 100),
        ("last page of the queue", queue(page=count // 50), 100),
        ("last page, newest first", queue(page=count // 50, order="newest"), 100),
        ("last page of what needs review", queue(states=("needs_review",), page=400), 100),
        ("last page of a score range", queue(quality_from=0.2, quality_to=0.6, page=700), 100),
        ("counts of every filter value", store.cases.facets, 100),
        ("opening a case with its run, runs and log", lambda: opened(store, f"case-{count // 2 + 1:06}"), 50),
        (
            "a decision",
            lambda: store.decisions.append(
                Decision(reviewer="Ada", case_id="case-000009", run_id=None, verdict="approve")
            ),
            50,
        ),
    ]


def opened(store: Store, case_id: str) -> object:
    """What the desk reads."""
    return (
        store.cases.get(case_id),
        store.cases.summary(case_id),
        store.runs.for_case(case_id),
        store.runs.get(f"run-{case_id}"),
        store.decisions.current(case_id),
    )


def compression() -> None:
    """What packing an iteration saves and costs."""
    text = _iteration(1, " ".join(map(_word, range(128))), 20, random.Random(1), True).model_dump_json().encode()
    for level in (1, 6, 9):
        began = time.perf_counter()
        for _ in range(200):
            packed = zlib.compress(text, level)
        spent = (time.perf_counter() - began) / 200
        began = time.perf_counter()
        for _ in range(200):
            zlib.decompress(packed)
        back = (time.perf_counter() - began) / 200
        print(
            f"packing an iteration of {len(text):,} bytes at level {level}: {len(packed):,} bytes, "
            f"{spent * 1000:.2f} ms in, {back * 1000:.2f} ms out"
        )


def _writer(path: Path, name: str, count: int) -> None:
    with Store.open(path) as store:
        for number in range(count):
            run = f"run-{name}"
            case = "case-000000"
            store.runs.append_event(
                Event(run_id=run, case_id=case, seq=number + 1, at="2026-01-01T00:00:00Z", kind="step_started")
            )
            decided = f"case-{number % 100:06}"
            store.decisions.append(Decision(reviewer=name, case_id=decided, run_id=None, verdict="approve"))


def concurrent(folder: Path, writers: int = 4, each: int = 500) -> int:
    """Several processes writing at once; returns how many of their writes are missing afterwards."""
    path = folder / "concurrent.db"
    case = next(cases(1))
    with Store.open(path) as store:
        store.cases.add_many(cases(100))
        for number in range(writers):
            store.runs.start(f"run-{number}", case_id=case.id, case_digest=case.digest(), models={}, settings={})
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_writer, args=(path, str(number), each)) for number in range(writers)]
    began = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    spent = time.perf_counter() - began
    with Store.open(path) as store:
        check = store.check()
        kept = check.counts["run_events"] + check.counts["decision_log"]
    lost = 2 * writers * each - kept
    print(
        f"{writers} processes, {2 * writers * each:,} writes in {spent:.1f} s: {lost} lost, "
        f"log {'intact' if check.ok else 'BROKEN: ' + json.dumps([*check.problems, *check.log.broken][:3])}"
    )
    return lost + (not check.ok)


def main() -> int:
    """Run it all; 1 where a target is missed or a write lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="keep the database in this folder, and use it if it is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        store = Store.open(folder / f"store-{given.cases}.db")
        if store.cases.count() == 0:
            fill(store, given.cases)
        print(f"database: {store.path.stat().st_size / 1e6:,.0f} MB")
        compression()
        print(f"\n{'milliseconds':<48} {'median':>8} {'worst':>8} {'own':>8}   target")
        kept = [timed(name, work, target) for name, work, target in questions(store, given.cases)]
        began = time.perf_counter()
        check = store.check()
        print(
            f"\nhealth check of all: {time.perf_counter() - began:.1f} s, {'well' if check.ok else check.problems[:3]}"
        )
        began = time.perf_counter()
        lines = write_archive(store, _Sink())
        print(f"archive of {lines:,} lines: {time.perf_counter() - began:.1f} s")
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
        lost = concurrent(Path(temporary))
    return 0 if all(kept) and not lost else 1


class _Sink(io.BytesIO):
    def write(self, content: object) -> int:
        return 0


if __name__ == "__main__":
    sys.exit(main())
