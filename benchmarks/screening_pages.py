"""Check that the verdict of a screening doesn't depend on the page size of retrieval.

    PYTHONPATH=. python benchmarks/screening_pages.py --data FOLDER

Screens twelve typical questions over all abstracts of ``pubmedqa_cases.jsonl``, in pages of 8, 20
and 60 and all at once (``masis screen --all``). The verdicts for 20 and more must be equal, and a
page of 8 must not say "sufficient" if a page of 20 doesn't. Exits 1 otherwise.
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
    """Grades by key, so that each abstract is graded once for all page sizes."""

    put = dict.__setitem__


def screen_at_page_sizes(
    question: str, pool: list[Abstract], grader: CachingGrader
) -> dict[str, Screening]:
    """Return the screening of a question for each page size."""
    source = InMemoryRetriever(pool)
    by_size = {
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
    complete = screen(
        question,
        [FixedSetRetriever(pool)],
        grader,
        Settings(),
        screening_id="all",
        limit=len(pool),
        is_complete_set=True,
    )
    return {**by_size, "all": run_to_completion(complete)}


def main(data: Path) -> int:
    """Print each verdict, and for how many questions the verdicts agree."""
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
    # a dictionary suffices in one process
    grader = CachingGrader(offline_grader(), Grades())  # type: ignore[arg-type]
    equal = safe = 0
    for question in QUESTIONS:
        by_size = screen_at_page_sizes(question, pool, grader)
        is_sufficient = {
            size: screening.decision == "sufficient" for size, screening in by_size.items()
        }
        equal += len({is_sufficient[size] for size in is_sufficient if size != "8"}) == 1
        safe += is_sufficient["20"] or not is_sufficient["8"]
        print(question)
        for size, screening in by_size.items():
            last = next(
                (r for r in screening.rounds if r.ruling.decision == "sufficient"),
                screening.rounds[-1],
            )
            tally = last.ruling.tally
            too_few = ", too few" if last.ruling.too_few else ""
            print(
                f"  {size:>3}: {screening.outcome:22} {len(screening.rounds)} rounds,"
                f" {tally.keep} of {tally.votes} keep,"
                f" average {last.ruling.average or 0:.3f}{too_few}"
            )
    print(
        f"of {len(QUESTIONS)} questions {equal} equal at 20 and more, {safe} no more lenient at 8"
        " than at 20"
    )
    return 0 if equal == safe == len(QUESTIONS) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    sys.exit(main(parser.parse_args().data))
