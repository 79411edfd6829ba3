"""Times the offline index on input of ExpertQA size: about 25 sentences and 2,600 characters of
evidence, seven claims.

    python benchmarks/alignment.py [--cases 60]

Prints milliseconds to build an index and to assess a claim, medians and 90th percentiles, on texts
made up with a fixed seed; then the seconds of processor time of the hardest answer: 100 sentences
with five wrong values each beside 100 chunks alike, audited, revised and audited again.
"""

import argparse
import random
import statistics
import time
from collections.abc import Sequence

from masis import Case, run_audit
from masis.offline.matching.evidence_index import EvidenceIndex

_SUBJECTS = (
    "The company",
    "The board",
    "A new trial",
    "The council of Bergen",
    "Version 7",
    "The ministry",
    "Dr Lind",
)
_VERBS = (
    "reported",
    "announced",
    "did not confirm",
    "reduced",
    "increased",
    "measured",
    "published",
)
_OBJECTS = (
    "revenue from service contracts",
    "the number of patients",
    "emissions of nitrogen oxides",
    "the limit for new cases",
)


def sentence(draw: random.Random) -> str:
    """A sentence of a report, with a number, a name and a date."""
    return (
        f"{draw.choice(_SUBJECTS)} {draw.choice(_VERBS)} {draw.choice(_OBJECTS)} of"
        f" {draw.randint(2, 900)} million in {draw.randint(1990, 2024)}, which the region had"
        " expected after the review."
    )


def timed(cases: int) -> tuple[list[float], list[float]]:
    """Milliseconds of every build and every assessment."""
    builds, assessments = [], []
    for seed in range(cases):
        draw = random.Random(seed)
        evidence = [(str(k), " ".join(sentence(draw) for _ in range(5))) for k in range(5)]
        start = time.perf_counter()
        index = EvidenceIndex(evidence)
        builds.append((time.perf_counter() - start) * 1000)
        for _ in range(7):
            claim = sentence(draw)
            start = time.perf_counter()
            index.assess(claim)
            assessments.append((time.perf_counter() - start) * 1000)
    return builds, assessments


def hardest(sentences: int = 100) -> Case:
    """An answer no value of which is right, beside chunks that differ in their values only."""
    draw = random.Random(7)
    names = (
        "Alder",
        "Birch",
        "Cedar",
        "Dogwood",
        "Elm",
        "Fir",
        "Ginkgo",
        "Hazel",
        "Ironwood",
        "Juniper",
    )

    def told(number: int, values: Sequence[int]) -> str:
        year, region, tonnes, workers, cost = values
        return (
            f"In {year}, the {names[number % len(names)]} plant of region {region} made {tonnes}"
            f" tonnes of paper with {workers} workers at a cost of {cost} million dollars"
        )

    answer, evidence = [], []
    for number in range(sentences):
        right = [
            draw.randint(*span) for span in ((1990, 2023), (1, 40), (100, 900), (20, 300), (2, 60))
        ]
        evidence.append({"id": f"chunk_{number}", "text": f"{told(number, right)}."})
        answer.append(
            f"{told(number, [value + draw.randint(1, 9) for value in right])} [chunk_{number}]."
        )
    content = {
        "id": "hardest",
        "query": "How much paper was made?",
        "answer": " ".join(answer),
        "evidence": evidence,
    }
    return Case.model_validate(content)


def shown(name: str, values: Sequence[float]) -> str:
    """One line of the report."""
    ordered = sorted(values)
    slow = ordered[int(0.9 * len(ordered))]
    return (
        f"{name}: median {statistics.median(ordered):.2f} ms, 90% below {slow:.2f} ms, n"
        f" {len(ordered)}"
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=60)
    chosen = parser.parse_args()
    timed(3)
    builds, assessments = timed(chosen.cases)
    print(shown("index", builds))
    print(shown("assess", assessments))
    begun = time.process_time()
    iterations = run_audit(hardest()).total_iterations
    print(
        f"hardest answer: {time.process_time() - begun:.1f} s of processor time, {iterations}"
        " iterations"
    )


if __name__ == "__main__":
    main()
