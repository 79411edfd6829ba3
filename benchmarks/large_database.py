"""Build a database of a million cases within minutes, by copying the rows of 10,000 real ones.

    python benchmarks/large_database.py FILE [--cases 1000000]

The first 10,000 cases are stored through the normal API: some demo cases with real audits, and
small cases of made-up words. Of ten cases seven are audited; of these seven, a person decides two,
the policy accepts three, and two wait. The rows are then copied with new ids, numbers, dates,
scores and digests, each copy dated one day later, and the log is chained entry by entry. So a
person has decided a fifth of all cases, and `masis health` reports no problems. A million cases
take about 6.5 GB.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sqlite3
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.store import FIELDS, VOCABULARY, word
from masis.api.audits import run_audit
from masis.audit.acceptance import RULE_VERSION
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
from masis.schema.run import (
    AcceptanceCheck,
    AcceptanceRecord,
    Iteration,
    ReviewReason,
    Run,
    RunVersions,
)
from masis.services import demo_cases
from masis.store import Store
from masis.store.core.chained_log import canonical_json, place_after, sha256
from masis.store.jobs import pack, unpack
from masis.store.records import LogHead

BASE = 10_000
"""Cases that are stored through the normal API. Larger databases must be a multiple of this."""

REVIEWERS = ("Ada", "Grace", "Hedy", "Katherine")
FIRST_DAY = date(2026, 1, 1)
BATCH = 500
DEMO = 3
"""Demo cases with full audits among the first ones; all others are smaller."""


JUDGE = JudgedBy(model="offline", version="1")


def generate_cases(count: int) -> Iterator[Case]:
    """Yield small cases of made-up words, each with three chunks and four sentences."""
    draw = random.Random(7)
    words = [word(number) for number in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / (number + 1) for number in range(VOCABULARY)))
    for number in range(count):
        text = [" ".join(draw.choices(words, cum_weights=weights, k=12)) for _ in range(7)]
        yield Case.model_validate(
            {
                "id": f"case-{number:06}",
                "query": f"What about {text[0]}?",
                "answer": (
                    ". ".join(
                        f"{sentence} [{index}]" for index, sentence in enumerate(text[1:5], 1)
                    )
                    + "."
                ),
                "evidence": [
                    {"id": str(index), "text": sentence}
                    for index, sentence in enumerate(text[4:], 1)
                ],
                "metadata": {"field": draw.choice(FIELDS), "dataset": f"set-{number % 4}"},
            }
        )


def make_run(case: Case, draw: random.Random, sentences: int) -> Run:
    """Build a run of two iterations with one claim per sentence."""
    answer = case.answer or ""
    bad = draw.random() < 0.3
    iterations = tuple(
        _iteration(number, answer, sentences, draw, bad and number == 1) for number in (1, 2)
    )
    return Run(
        id=f"run-{case.id}",
        case_id=case.id,
        case_digest=case.digest(),
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:01.000Z",
        models=dict.fromkeys(("drafter", "verifier", "critic", "reviser", "evaluator"), "offline"),
        settings={"max_iterations": 3},
        versions=RunVersions(app="0.1.0", rubric="1", offline_rules="1"),
        iterations=iterations,
        best=1,
        final_answer=answer,
        final_quality_score=iterations[1].quality_score,
        improvement_percentage=None,
        total_iterations=2,
        converged=True,
        termination_reason="convergence",
        needs_review=bad,
        acceptance=AcceptanceRecord(
            rule=RULE_VERSION,
            checks=(AcceptanceCheck(name="confidence", passed=not bad, detail="of a benchmark"),),
        ),
        review_reasons=(
            (ReviewReason(code="low_confidence", message="Confidence is low."),) if bad else ()
        ),
    )


def _iteration(
    number: int, answer: str, sentences: int, draw: random.Random, bad: bool
) -> Iteration:
    quality, confidence, overall = (round(draw.random(), 4) for _ in range(3))
    text = answer[:80]
    return Iteration(
        iteration_number=number,
        answer=answer,
        citation_audit=CitationAudit(
            mode="standard",
            citations=(),
            sentences=tuple(
                Sentence(
                    start=0, end=80, text=text, citation_ids=("1",), status="cited", why="cites 1"
                )
                for _ in range(sentences)
            ),
            invalid_citations=("9",) if bad else (),
            uncited_claims=(text,) if draw.random() < 0.4 else (),
            hallucination_detected=bad,
            needs_retry=bad,
            penalty_factor=0.5 if bad else 1.0,
        ),
        claims=tuple(
            ClaimCheck(
                claim=Claim(text=text, start=0, end=80),
                verdict="supported",
                support=0.9,
                confidence=0.8,
            )
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


def make_base(store: Store, count: int) -> None:
    """Fill an empty store through its normal API."""
    draw = random.Random(3)
    for case in itertools.islice(demo_cases(), DEMO):
        store.cases.add(case)
        store.runs.finish(run_audit(case))
    remaining = iter(list(generate_cases(count - store.cases.count())))
    while batch := [case for _, case in zip(range(BATCH), remaining, strict=False)]:
        with store.transaction():
            for case in batch:
                store.cases.add(case)
                part = draw.randrange(10)
                if part >= 7:
                    continue
                run = make_run(case, draw, sentences=4).model_copy(
                    update={"needs_review": part not in (2, 3, 4)}
                )
                store.runs.finish(run)
                if part < 5:
                    store.decisions.append(
                        _entry(case.id, run.id, part < 2, draw), "2026-01-01T12:00:00.000Z"
                    )


def _entry(case_id: str, run_id: str, person: bool, draw: random.Random) -> Decision:
    if person:
        verdict = draw.choices(("approve", "reject", "escalate"), (7, 2, 1))[0]
        return Decision(
            reviewer=draw.choice(REVIEWERS),
            case_id=case_id,
            run_id=run_id,
            verdict=verdict,
            reason="" if verdict == "approve" else "The evidence does not support it.",
        )
    return Decision(
        kind="policy_accept",
        source="CODE",
        reviewer="acceptance policy",
        case_id=case_id,
        run_id=run_id,
        verdict="approve",
    )


COPIED = (
    *(
        "cases",
        "case_payloads",
        "case_work",
        "jobs",
        "job_parts",
        "run_measures",
        "iteration_measures",
    ),
    *("executions", "decision_log", "decision_payloads"),
)


class Copier:
    """Copies the rows of the first ``BASE`` cases, on its own connection.

    For speed, it turns off the safety settings of a live database: nothing waits for the disk, and
    indexes and triggers are dropped and created again at the end.
    """

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in (
            "synchronous = OFF",
            "cache_size = -1000000",
            "foreign_keys = OFF",
            "secure_delete = OFF",
        ):
            self.connection.execute(f"PRAGMA {pragma}")
        names = ", ".join(f"'{name}'" for name in COPIED)
        self.indexes_and_triggers = self.connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('index',"
            f" 'trigger') AND tbl_name IN ({names})"
        ).fetchall()
        for kind, name, _sql in self.indexes_and_triggers:
            self.connection.execute(f"DROP {kind} {name}")
        self.steps = {
            "case_seq": self._last("cases"),
            "run_seq": self._last("jobs"),
            "job_seq": self._last("jobs"),
            "entry_seq": self._last("decision_log"),
            "decision_seq": self._last("decision_log"),
            "measures_seq": self._last("run_measures"),
        }
        self.contents = [
            json.loads(row[0])
            for row in self._all("SELECT payload FROM case_payloads ORDER BY case_seq")
        ]
        self.digests = [row[0] for row in self._all("SELECT digest FROM cases ORDER BY seq")]
        self.runs = self._all("SELECT seq, id, case_seq, payload FROM runs ORDER BY seq")
        self.results = [unpack(row[3]) for row in self.runs]
        self.iterations: dict[int, list[str]] = {}
        for seq, payload in self._all(
            "SELECT job_seq, payload FROM job_parts WHERE kind = 'iteration' ORDER BY job_seq,"
            " number"
        ):
            self.iterations.setdefault(seq, []).append(unpack(payload))
        self.log = self._all(
            "SELECT log.case_seq, log.run_seq, kind, source, verdict, reviewer, payload FROM"
            " decision_log AS log JOIN decision_payloads ON entry_seq = log.seq ORDER BY log.seq"
        )
        self.head = LogHead(
            *self._all("SELECT seq, digest FROM decision_log ORDER BY seq DESC LIMIT 1")[0]
        )

    def copy(self, number: int) -> None:
        """Write copy ``number`` (counted from 1) in one transaction."""
        self.connection.execute("BEGIN")
        day = str(FIRST_DAY + timedelta(days=number))
        contents = [content | {"id": f"{content['id']}-{number}"} for content in self.contents]
        generate_cases = [sha256(canonical_json(content)) for content in contents]
        texts = [self._run(place, number, generate_cases, day) for place in range(len(self.runs))]
        self._cases(number, contents, generate_cases)
        self._copy("case_work", number)
        marks = self._copy(
            "jobs", number, {"payload", "case_digest"}, {"started_at": day, "ended_at": day}
        )
        packed = (
            (pack(text), generate_cases[run[2] - 1], run[0])
            for text, run in zip(texts, self.runs, strict=True)
        )
        self.connection.executemany(
            f"INSERT INTO jobs SELECT {marks} FROM jobs WHERE seq = ?3",
            ((digest, payload, seq) for payload, digest, seq in packed),
        )
        self._copy("job_parts", number)
        self._copy("run_measures", number, at={"finished_at": day})
        self._copy("iteration_measures", number)
        self._copy("executions", number, at={"at": day})
        self._decide(number, generate_cases, texts, f"{day}T12:00:00.000Z")
        self.connection.execute("COMMIT")

    def finish(self) -> None:
        """Copy each case's new figures to its run, and create the indexes and triggers again."""
        self.connection.execute(
            "UPDATE jobs SET risk = cases.risk, disagreement = cases.disagreement, doubt ="
            " cases.doubt FROM cases WHERE cases.run_seq = jobs.seq"
        )
        for _kind, _name, sql in self.indexes_and_triggers:
            self.connection.execute(sql)
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()

    def _cases(self, number: int, contents: list[dict[str, Any]], digests: list[str]) -> None:
        draw, first = random.Random(number), number * self.steps["case_seq"] + 1
        columns = self._copy("cases", number, {"digest", "risk", "disagreement", "doubt"})
        moved = (
            (digest, draw.uniform(-0.05, 0.05), place) for place, digest in enumerate(digests, 1)
        )
        self.connection.executemany(
            f"INSERT INTO cases SELECT {columns} FROM cases WHERE seq = ?3", moved
        )
        rows = (
            (first + place, json.dumps(content, ensure_ascii=False))
            for place, content in enumerate(contents)
        )
        self.connection.executemany("INSERT INTO case_payloads VALUES (?, ?)", rows)
        self.connection.executemany(
            "INSERT INTO case_words (rowid, id, query, answer, evidence) VALUES (?, ?, ?, ?, ?)",
            (
                [
                    *(first + place, content["id"], content["query"], content.get("answer") or ""),
                    "\n".join(chunk["text"] for chunk in content.get("evidence", ())),
                ]
                for place, content in enumerate(contents)
            ),
        )

    def _run(self, place: int, number: int, digests: list[str], day: str) -> str:
        """Return a run's payload, without iterations, with the ids and digests of the copy."""
        _seq, run_id, case_seq, _payload = self.runs[place]
        case_id = self.contents[case_seq - 1]["id"]
        text = self.results[place].replace(self.digests[case_seq - 1], digests[case_seq - 1])
        text = text.replace(f'"id":"{run_id}"', f'"id":"{run_id}-{number}"').replace(
            "2026-01-01T", f"{day}T"
        )
        return text.replace(f'"case_id":"{case_id}"', f'"case_id":"{case_id}-{number}"')

    def _decide(self, number: int, digests: list[str], texts: list[str], decided_at: str) -> None:
        for case_seq, run_seq, kind, source, verdict, reviewer, payload in self.log:
            place = run_seq - self.runs[0][0]
            both = f'"iterations":[{",".join(self.iterations[run_seq])}]'
            about = json.loads(payload)["about"]
            text = payload.replace(about["case"], digests[case_seq - 1])
            text = text.replace(
                about["run"], sha256(texts[place].replace('"iterations":[]', both, 1))
            )
            for name, field_value in (
                ("case_id", self.contents[case_seq - 1]["id"]),
                ("run_id", self.runs[place][1]),
            ):
                text = text.replace(
                    f'"{name}":"{field_value}"', f'"{name}":"{field_value}-{number}"'
                )
            entry = place_after(self.head, decided_at, sha256(text))
            self.head = LogHead(entry.seq, entry.digest)
            case, run = (
                case_seq + number * self.steps["case_seq"],
                run_seq + number * self.steps["run_seq"],
            )
            self.connection.execute(
                "INSERT INTO decision_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL,"
                " NULL, NULL)",
                [
                    *(
                        entry.seq,
                        entry.id,
                        decided_at,
                        entry.payload_digest,
                        entry.previous,
                        entry.digest,
                    ),
                    *(case, run, kind, source, verdict),
                ],
            )
            self.connection.execute(
                "INSERT INTO decision_payloads VALUES (?, ?, ?)", [entry.seq, reviewer, text]
            )

    def _copy(
        self,
        table: str,
        number: int,
        given: Collection[str] = (),
        at: Mapping[str, str] | None = None,
    ) -> str:
        """Copy the first rows of a table, or only return the list of columns to select.

        Args:
            table: The table to copy.
            number: The number of the copy.
            given: Columns whose values the caller supplies as SQL parameters. If there are any,
                nothing is copied, and the caller runs its own INSERT with the returned list.
            at: New dates of columns that hold a time.

        Returns:
            The SELECT list, with a parameter for each column of ``given``.

        """
        columns = [row[1] for row in self._all(f"PRAGMA table_info({table})")]
        own = (
            "seq"
            if "seq" in columns
            else next(column for column in columns if column in self.steps)
        )
        last = self.steps.setdefault(table, self._last(table, own))
        selected = []
        for column in columns:
            step = last if column == "seq" else self.steps.get(column, 0)
            if column in ("digest", "case_digest") and column in given:
                selected.append("?1")
            elif column == "payload" and column in given:
                selected.append("?2")
            elif column in given:
                selected.append(f"iif({column} < 0, {column}, max(0, {column} + ?2))")
            elif column in ("id", "run_id", "case_id"):
                selected.append(f"{column} || '-{number}'")
            elif at and column in at:
                selected.append(f"'{at[column]}' || substr({column}, 11)")
            else:
                selected.append(f"{column} + {step * number}" if step else column)
        if not given:
            copied = (
                f"SELECT {', '.join(selected)} FROM {table} WHERE {own} <= {last} ORDER BY {own}"
            )
            self.connection.execute(f"INSERT INTO {table} {copied}")
        return ", ".join(selected)

    def _last(self, table: str, column: str = "seq") -> int:
        return int(self._all(f"SELECT max({column}) FROM {table}")[0][0])

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()


def make(path: Path, count: int) -> None:
    """Build a database of ``count`` cases unless it is there already.

    Raises:
        SystemExit: The number isn't a multiple of ``BASE``, or the file is incomplete.

    """
    base = min(BASE, count)
    if count % base:
        raise SystemExit(f"The number of cases must be a multiple of {BASE:,}.")
    with Store.open(path) as store:
        if store.cases.count() == count:
            return
        if store.cases.count():
            raise SystemExit(f"{path} is incomplete. Delete it and try again.")
        started = time.perf_counter()
        make_base(store, base)
    copier = Copier(path)
    for number in range(1, count // base):
        copier.copy(number)
        if number % 10 == 9:
            print(
                f"{(number + 1) * base:,} cases after {time.perf_counter() - started:,.0f} s",
                flush=True,
            )
    copier.finish()


def main() -> None:
    """Build the database and print its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", type=int, default=1_000_000)
    options = parser.parse_args()
    make(options.file, options.cases)
    with Store.open(options.file) as store:
        decided = store.database.value("SELECT count(*) FROM decision_log WHERE kind = 'decision'")
        audits = store.database.value("SELECT count(*) FROM run_measures")
        print(f"{store.cases.count():,} cases, {audits:,} audits, {decided:,} decisions of people")
    print(f"{options.file.stat().st_size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
