"""Time the offline index on input the size of ExpertQA's: about 25 sentences and 2,600 characters
of evidence, and seven claims.

    python benchmarks/alignment.py [--cases 60]

Prints the median and the 90th percentile, in milliseconds, for building an index and for assessing
a claim, on texts generated with a fixed seed. Then prints the processor time, in seconds, for the
hardest answer: 100 sentences with five wrong values each and 100 similar chunks, audited, revised
and audited again.
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
    """Generate a sentence of a report, with a number, a name and a year."""
    return (
        f"{draw.choice(_SUBJECTS)} {draw.choice(_VERBS)} {draw.choice(_OBJECTS)} of"
        f" {draw.randint(2, 900)} million in {draw.randint(1990, 2024)}, which the region had"
        " expected after the review."
    )


def time_index(cases: int) -> tuple[list[float], list[float]]:
    """Return how many milliseconds each build and each assessment took."""
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


def hardest_case(sentences: int = 100) -> Case:
    """Build a case whose answer has only wrong values and whose chunks differ only in values."""
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

    def plant_report(number: int, values: Sequence[int]) -> str:
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
        evidence.append({"id": f"chunk_{number}", "text": f"{plant_report(number, right)}."})
        wrong = [value + draw.randint(1, 9) for value in right]
        answer.append(f"{plant_report(number, wrong)} [chunk_{number}].")
    content = {
        "id": "hardest",
        "query": "How much paper was made?",
        "answer": " ".join(answer),
        "evidence": evidence,
    }
    return Case.model_validate(content)


def format_times(name: str, values: Sequence[float]) -> str:
    """Return one line of the report."""
    ordered = sorted(values)
    slow = ordered[int(0.9 * len(ordered))]
    return (
        f"{name}: median {statistics.median(ordered):.2f} ms, 90th percentile {slow:.2f} ms,"
        f" n = {len(ordered)}"
    )


def main() -> None:
    """Run the benchmark and print the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=60)
    options = parser.parse_args()
    time_index(3)
    builds, assessments = time_index(options.cases)
    print(format_times("index", builds))
    print(format_times("assess", assessments))
    started = time.process_time()
    iterations = run_audit(hardest_case()).total_iterations
    print(
        f"hardest answer: {time.process_time() - started:.1f} s of processor time, {iterations}"
        " iterations"
    )


if __name__ == "__main__":
    main()
