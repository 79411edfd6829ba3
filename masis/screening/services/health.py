"""What Health checks of screening."""

from __future__ import annotations

from masis.errors import StepError
from masis.schema.screening import Abstract
from masis.screening.critic import screen_abstracts
from masis.services.maintenance.health import REINSTALL, HealthItem, check_start
from masis.settings import Settings

_ABSTRACT = Abstract(
    id="health",
    title="Aspirin in acute headache: a randomised trial",
    text=(
        "We randomised 400 adults with acute headache to aspirin or placebo. Aspirin relieved pain"
        " within two hours."
    ),
)


def check_evidence_critic() -> HealthItem:
    """Check that the evidence critic grades a small abstract with its offline grader."""

    def start() -> str:
        if not screen_abstracts("Does aspirin relieve headache?", [_ABSTRACT], Settings()).grades:
            raise StepError("graded nothing of a small abstract")
        return "graded a small abstract"

    return check_start("evidence critic", start, REINSTALL)
