"""Import audited cases from a lake: cases that need review, and a random sample of the others.

Cases are stored with their runs, so that pages show the audit without repeating it. A sampled case
is a spot check, as if the audit had drawn it. The share of wrong answers among decided spot checks
estimates how many faulty answers are auto-accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.audit.measures.statistics import exact_bounds
from masis.datasets.lake import OUTCOMES, Outcome, open_lake
from masis.errors import InputError, MasisError
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.team import LakeSample, is_drawn_from_lake
from masis.services.access import ADD_CASES, Service, requires
from masis.services.reviews import name_of

_BATCH = 200
"""The number of rows whose cases are stored in one transaction."""

_FOUND_WRONG = ("overridden", "rejected")


class LakeImport(NamedTuple):
    """The result of an import: cases by outcome, existing cases, refused rows, and the recorded
    sample, if any.
    """

    imported: dict[Outcome, int]
    unchanged: int
    refused: int
    sample: LakeSample | None


class MissRate(NamedTuple):
    """The result of the decisions on a sample: ``wrong`` of the ``decided`` answers were faulty.

    ``low`` and ``high`` are the 95% interval of the share among all auto-accepted answers, or None
    before the first decision.
    """

    sample: LakeSample
    present: int
    decided: int
    wrong: int
    low: float | None
    high: float | None


class LakeService(Service):
    """The use cases of audited cases in Parquet files."""

    @staticmethod
    def count_outcomes(place: str) -> dict[Outcome, int]:
        """Count the rows of a lake by outcome.

        Raises:
            InputError: There is no lake.

        """
        return _count_rows(open_lake(place))

    @requires("audit", ADD_CASES)
    def import_cases(
        self,
        actor: Actor,
        place: str,
        *,
        needs_review: bool,
        share: float = 0.0,
        seed: int = 0,
        on_rows: Callable[[int], object] = lambda read: None,
        on_problem: Callable[[MasisError], object] = lambda error: None,
    ) -> LakeImport:
        """Store cases of a lake with their runs; existing cases stay as they are.

        Args:
            actor: Who imports them.
            place: A folder, or an address that fsspec reads.
            needs_review: Import the cases that need review or failed; failed cases have no audit.
            share: The share of the auto-accepted cases to sample as spot checks, 0 to 1.
            seed: The seed of the sample: the same seed and share give the same cases.
            on_rows: Called with the number of rows read.
            on_problem: Called with the error of each refused row.

        Raises:
            NotAllowed: The actor's role doesn't allow imports.
            InputError: There is no lake, or the actor has no name to record a sample under.

        """
        lake = open_lake(place)
        counts = _count_rows(lake)
        sample = None
        if share > 0:
            batches = _scan_lake(lake, "accepted", ["case_id"], 50_000)
            drawn = sum(
                is_drawn_from_lake(case_id, seed, share)
                for batch in batches
                for case_id in batch["case_id"].to_pylist()
            )
            sample = LakeSample(place=place, share=share, seed=seed, drawn=drawn, **counts)
            # The sample is recorded first, so that an interrupted import continues with it.
            self._store.team.note_sample(name_of(actor), sample)
        imported: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        read = unchanged = refused = 0
        for outcome in OUTCOMES:
            rows = (
                _lake_rows(lake, outcome)
                if (sample if outcome == "accepted" else needs_review)
                else iter(())
            )
            while batch := list(islice(rows, _BATCH)):
                with self._store.transaction():
                    for row in batch:
                        if (
                            sample
                            and outcome == "accepted"
                            and not (row["case_id"] and sample.draws(row["case_id"]))
                        ):
                            continue
                        try:
                            added = self._store_row(row, outcome, place)
                        except MasisError as error:  # The other rows of the batch are still stored.
                            refused += 1
                            on_problem(error)
                        else:
                            imported[outcome] += added
                            unchanged += not added
                read += len(batch)
                on_rows(read)
        return LakeImport(imported, unchanged, refused, sample)

    def _store_row(self, row: dict[str, Any], outcome: Outcome, place: str) -> bool:
        """Store the case and run of a row in one transaction, and return whether it is new."""
        case, run = _case_and_run(row, outcome, place)
        with self._store.transaction():
            # The transaction is a savepoint within the batch, so a refused row doesn't undo the
            # others.
            added = self._store.cases.add(case) == "added"
            if run is not None:
                self._store.runs.finish(run)
        return added

    def miss_rates(self) -> tuple[MissRate, ...]:
        """Return the results of the decisions on each sample; escalated cases don't count."""
        samples = self._store.team.samples()
        states: dict[int, list[str]] = {number: [] for number in range(len(samples))}
        if samples:
            drawn = self._store.trust.spot_checks()
            for case_id, state in zip(drawn["case_id"], drawn["state"], strict=True):
                for number, sample in enumerate(samples):
                    if sample.draws(case_id):
                        states[number].append(state)
        return tuple(_miss_rate(sample, states[number]) for number, sample in enumerate(samples))


def _miss_rate(sample: LakeSample, states: list[str]) -> MissRate:
    wrong = sum(state in _FOUND_WRONG for state in states)
    decided = wrong + states.count("approved")
    low, high = exact_bounds(wrong, decided) if decided else (None, None)
    return MissRate(sample, len(states), decided, wrong, low, high)


def _count_rows(lake: Any) -> dict[Outcome, int]:
    from pyarrow import dataset

    return {
        outcome: lake.count_rows(filter=dataset.field("outcome") == outcome) for outcome in OUTCOMES
    }


def _lake_rows(lake: Any, outcome: Outcome) -> Iterator[dict[str, Any]]:
    columns = ["case_id", "case_json", "run_json", "error", "source", "source_row"]
    for batch in _scan_lake(lake, outcome, columns, _BATCH):
        yield from batch.to_pylist()


def _scan_lake(lake: Any, outcome: Outcome, columns: list[str], rows: int) -> Iterator[Any]:
    """Yield batches of one outcome. Little is read ahead, because a run has tens of kilobytes."""
    from pyarrow import dataset

    condition = dataset.field("outcome") == outcome
    scanner = lake.scanner(
        columns=columns, filter=condition, batch_size=rows, batch_readahead=1, fragment_readahead=1
    )
    return iter(scanner.to_batches())


def _case_and_run(row: dict[str, Any], outcome: Outcome, place: str) -> tuple[Case, Run | None]:
    """Return the case and the run of a row.

    Raises:
        InputError: The row has no valid case or run; the message says where it came from.

    """
    try:
        case = Case.from_stored(row["case_json"] or "")
        run = Run.model_validate_json(row["run_json"]) if row["run_json"] else None
    except (ValidationError, MasisError) as error:
        where = f"{row['source'] or place}, row {row['source_row']}" if row["source_row"] else place
        why = f": {row['error']}" if row["error"] else ""
        raise InputError(
            f"has no case that can be imported{why}",
            hint="Fix the row and audit it again.",
            file=where,
        ) from error
    if run is None and outcome != "failed":
        raise InputError(f"case {case.id!r} has no run", hint="Audit it again.", file=place)
    if run is not None and (run.case_id, run.case_digest) != (case.id, case.digest()):
        raise InputError(
            f"the run of case {case.id!r} belongs to another case",
            hint="Audit it again.",
            file=place,
        )
    if run is not None and outcome == "accepted":
        run = run.model_copy(update={"spot_check": True})
    return case, run
