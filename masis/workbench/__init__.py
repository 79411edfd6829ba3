"""The use cases: what pages, command line and integrations all call.

``Workbench`` is a store with settings: cases, audits, decisions. Beside it what looks at the whole (``health``) and the
demo cases (``demo``).
"""

from masis.workbench.bench import POLICY_REVIEWER, CaseView, Overview, Workbench
from masis.workbench.demo import app_root, demo_case_files, demo_cases
from masis.workbench.health import HealthItem, HealthReport

__all__ = [
    "POLICY_REVIEWER",
    "CaseView",
    "HealthItem",
    "HealthReport",
    "Overview",
    "Workbench",
    "app_root",
    "demo_case_files",
    "demo_cases",
]
