"""``masis minimal`` verifies claims again without the passages that decide them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from masis.cli import options as shared
from masis.cli.commands import Command
from masis.cli.output import Emit, say
from masis.cli.remote import desk_options
from masis.schema.minimal_evidence import MinimalEvidence
from masis.schema.wording import count_noun, shorten
from masis.services.desk import Desk


@click.command(cls=Command)
@click.argument("case")
@click.option(
    "--claim",
    type=click.IntRange(1),
    metavar="N",
    help="Verify only this claim of the answer, counted from 1. Default: all claims with passages.",
)
@shared.iteration_option
@click.option("--stored", is_flag=True, help="List the stored results, and verify nothing.")
@desk_options
@shared.json_option
def minimal(
    case: str, claim: int | None, iteration: int, stored: bool, desk: Desk, emit: Emit
) -> None:
    """Verify claims of CASE again without the passages that decide them.

    If the verdict stays the same without its passages, they weren't the only reason for it. The
    passages are those that a label on the claim names, otherwise those of the audit. The verifier
    of the audit judges, so a model may be asked twice for each claim.

      masis minimal bridge-01
      masis minimal bridge-01 --claim 2 --json
      masis minimal bridge-01 --stored

    The results are stored, and 'masis export --format contrast' writes them as pairs.
    """
    if stored:
        results = desk.minimal_evidence(case)
        nothing = "There are no results. Run the command without --stored."
    else:
        results = desk.verify_without_passages(case, claim=claim, iteration=iteration)
        nothing = "No claim has a passage that decides its verdict. Label one with a passage first."
    changed = sum(result.decisive for result in results)
    record = {"case": case, "claims": len(results), "decisive": changed, "results": list(results)}
    emit(record, _lines(results))
    claims = count_noun(len(results), "claim")
    say(f"The verdict changed for {changed:,} of {claims}." if results else nothing)


def _lines(results: Sequence[MinimalEvidence]) -> Iterator[str]:
    for result in results:
        yield f"claim {result.claim}: {shorten(result.text, 100)}"
        for passage in result.passages:
            yield f"  without {passage.evidence_id}: {shorten(passage.text, 100)}"
        change = "the passages decide it" if result.decisive else "the verdict stays the same"
        yield f"  {result.before} -> {result.after}: {change} ({result.judged_by})"
        if result.audited != result.before:
            yield f"  The audit's verdict was {result.audited}, among the other claims."
