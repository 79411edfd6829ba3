"""Describes the rounds of a screening, and shows its flow as a table."""

from __future__ import annotations

import pandas as pd

from masis.schema.screening import Flow, Round, Ruling
from masis.schema.wording import count_noun
from masis.screening.views.words import SUFFICIENCY
from masis.views.markdown import escape_markdown


def votes_text(round_: Round) -> str:
    """Return the votes of a round with their shares, as Markdown."""
    tally = round_.ruling.tally
    counts = {
        "keep": ("green", tally.keep),
        "need more": ("orange", tally.needs_more),
        "discard": ("red", tally.discard),
    }
    return ", ".join(
        f":{colour}[**{count}** {name}]" + (f" ({count / tally.votes:.0%})" if tally.votes else "")
        for name, (colour, count) in counts.items()
    )


def rules_text(round_: Round) -> str:
    """Return whether consensus, quality and number of studies are sufficient, as Markdown."""
    ruling = round_.ruling
    average = (
        "nothing kept"
        if ruling.decisive_average is None
        else f"average of the kept {ruling.decisive_average:.2f}"
    )
    reached = (
        ruling.decisive_average is not None and ruling.decisive_average >= ruling.required_average
    )
    rules = (
        (ruling.consensus == "sufficient", f"Consensus: {SUFFICIENCY[ruling.consensus].text}"),
        (reached, f"Quality: {average}, required {ruling.required_average:.2f}"),
        (ruling.studies > 0 and not ruling.too_few, f"Studies: {studies_text(ruling)}"),
    )
    return "  \n".join(f":green[✓] {text}" if held else f":red[✗] {text}" for held, text in rules)


def studies_text(ruling: Ruling) -> str:
    """Return the number of independent studies kept, and whether it is sufficient, as text."""
    kept = count_noun(ruling.studies, "independent study", "independent studies")
    if ruling.too_few:
        return f"{kept} kept, too few"
    return f"{kept} kept" + (", one of them enough alone" if ruling.enough_alone else "")


def flow_frame(flow: Flow) -> pd.DataFrame:
    """Return a flow as a table of Markdown cells, one row per step."""
    excluded = sum(reason.count for reason in flow.excluded)
    reasons = [(reason.label, reason.count) for reason in flow.excluded]
    undecided = [("need more evidence", flow.undecided - flow.unscored)]
    if flow.unscored:
        undecided.append(("couldn't be graded", flow.unscored))
    steps: list[tuple[str, int, str, list[tuple[str, int]]]] = [
        (
            "Identified",
            flow.identified,
            _left_out_text("Duplicates removed", flow.duplicates, "No duplicates"),
            [("couldn't be read", flow.unread)] if flow.unread else [],
        ),
        (
            "Screened",
            flow.screened,
            _left_out_text("Excluded", excluded, "Nothing excluded"),
            reasons,
        ),
        (
            "Not excluded",
            flow.screened - excluded,
            _left_out_text("Undecided", flow.undecided, "Nothing undecided"),
            undecided if flow.undecided else [],
        ),
        ("Kept", flow.kept, "", []),
    ]
    rows = [
        [
            name,
            f"**{count:,}**",
            " · ".join(
                [title, *(f"{number:,} {escape_markdown(reason)}" for reason, number in left)]
            ),
        ]
        for name, count, title, left in steps
    ]
    return pd.DataFrame(rows, columns=["Step", "Abstracts", "Removed here"])


def _left_out_text(title: str, count: int, nothing: str) -> str:
    return f"{title} ({count:,})" if count else nothing
