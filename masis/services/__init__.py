"""The use cases: what pages, command line and integrations all call.

``Workbench`` is a store with settings: cases, audits, decisions. Beside it what looks at the whole (``health``) and the
demo cases (``demo``).
"""

from masis.services.demo import app_root, demo_case_files, demo_cases
from masis.services.health import HealthItem, HealthReport
from masis.services.workbench import POLICY_REVIEWER, CaseView, Overview, Workbench

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
