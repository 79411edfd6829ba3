"""Whether the verdict of a screening hangs on how many results a page holds.

    PYTHONPATH=. python benchmarks/screening_pages.py --data FOLDER

Twelve questions as reviewers ask them, over all abstracts of ``pubmedqa_cases.jsonl``, at pages of
8, 20, 60 and all at once (``masis screen --all``). The verdicts at 20 and more are to be equal, and
a page of 8 is never to say "sufficient" where 20 doesn't. Exits with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract, Screening
from masis.screening.grading.grader import CachingGrader
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds.round_loop import screen
from masis.screening.sources.retrievers import FixedSetRetriever, InMemoryRetriever
from masis.settings import Settings

QUESTIONS = (
    "Does laparoscopic surgery shorten hospital stay compared with open surgery?",
    "Does obesity increase complications after surgery?",
    "Is body mass index associated with mortality?",
    "Does older age worsen the outcome of colorectal cancer surgery?",
    "Does hospital volume affect mortality after surgery?",
    "Does prostate-specific antigen predict prostate cancer?",
    "Does screening mammography reduce breast cancer mortality?",
    "Does diabetes increase mortality in patients with coronary disease?",
    "Does smoking increase the risk of postoperative complications?",
    "Does preterm birth impair cognitive development in children?",
    "Is depression associated with mortality in older adults?",
    "Does trauma centre care reduce mortality in injured patients?",
)
PAGES = (8, 20, 60)


class Grades(dict[str, object]):
    """Grades by key, so that no page grades an abstract again."""

    put = dict.__setitem__


def verdicts(question: str, pool: list[Abstract], grader: CachingGrader) -> dict[str, Screening]:
    """Return the screening of a question at each size of a page."""
    source = InMemoryRetriever(pool)
    found = {
        str(size): run_to_completion(
            screen(
                question,
                [source],
                grader,
                Settings(screening_retrieve=size),
                screening_id=str(size),
            )
        )
        for size in PAGES
    }
    whole = screen(
        question,
        [FixedSetRetriever(pool)],
        grader,
        Settings(),
        screening_id="all",
        limit=len(pool),
        given_whole=True,
    )
    return {**found, "all": run_to_completion(whole)}


def main(data: Path) -> int:
    """Print each verdict, and how many questions agree."""
    path = data / "pubmedqa_cases.jsonl"
    if not path.exists():
        raise SystemExit(f"skipped: no pubmedqa_cases.jsonl in {data}")
    cases = [json.loads(line) for line in path.open(encoding="utf-8")]
    pool = [
        Abstract(
            id=case["id"],
            title=case["query"],
            text="\n".join(chunk["text"] for chunk in case["evidence"]),
        )
        for case in cases
    ]
    grader = CachingGrader(offline_grader(), Grades())  # type: ignore[arg-type]  # a dictionary does for one process
    equal = safe = 0
    for question in QUESTIONS:
        found = verdicts(question, pool, grader)
        said = {size: each.decision == "sufficient" for size, each in found.items()}
        equal += len({said[size] for size in said if size != "8"}) == 1
        safe += said["20"] or not said["8"]
        print(question)
        for size, each in found.items():
            last = next(
                (r for r in each.rounds if r.ruling.decision == "sufficient"), each.rounds[-1]
            )
            tally = last.ruling.tally
            print(f"  {size:>3}: {each.outcome:22} {len(each.rounds)} rounds, {tally.keep} of "
                  f"{tally.votes} keep, "
                  f"average {last.ruling.average or 0:.3f}{', too few' if last.ruling.too_few else ''}")  # fmt: skip
    print(
        f"of {len(QUESTIONS)} questions {equal} equal at 20 and more, {safe} at 8 no more lenient"
        " than at 20"
    )
    return 0 if equal == safe == len(QUESTIONS) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    sys.exit(main(parser.parse_args().data))
