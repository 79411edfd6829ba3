"""The notebook view of a screening."""

from __future__ import annotations

from masis.schema.screening import Screening
from masis.screening.views.words import DESIGN
from masis.views.notebook import ISSUES_SHOWN, frame_html, short_html
from masis.views.numbers import score_text

_GRADES_SHOWN = 40


def screening_html(screening: Screening) -> str:
    """Return a screening as HTML for a notebook."""
    rows = "".join(
        f"<tr><td>{short_html(grade.abstract_id)}</td>"
        f"<td>{grade.recommendation.replace('_', ' ')}</td>"
        f"<td>{score_text(grade.quality)}</td>"
        f"<td>{short_html(DESIGN[grade.design] if grade.design else 'not recognized')}</td></tr>"
        for grade in screening.grades[:_GRADES_SHOWN]
    )
    hidden = len(screening.grades) - _GRADES_SHOWN
    more = f"<p>and {hidden:,} more abstracts</p>" if hidden > 0 else ""
    reasons = "".join(
        f"<li>{short_html(reason)}</li>" for reason in screening.reasons[:ISSUES_SHOWN]
    )
    return frame_html(
        [
            (
                f"<div><b>{short_html(screening.question)}</b> &middot;"
                f" {screening.outcome.replace('_', ' ')}</div>"
            ),
            f"<div>{len(screening.kept)} of {len(screening.grades)} abstracts kept</div>",
            f"<ul>{reasons}</ul>",
            (
                "<table><tr><th>abstract</th><th>recommendation</th><th>quality</th><th>study"
                " type</th></tr>"
            ),
            f"{rows}</table>",
            more,
        ]
    )
