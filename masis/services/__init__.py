"""The use cases: all reads and writes of pages, commands and integrations.

``Workbench.open(path)`` gives them by subject, each an attribute (``workbench.py`` lists them all),
and ``health()``. What changes something takes an ``Actor``. The values that go in and out are in
``records``.
"""

from masis.schema.actor import ANONYMOUS, Actor
from masis.services.access import OPEN, SIGN_IN_REQUIRED, Access
from masis.services.audits import POLICY
from masis.services.cases import CaseView
from masis.services.demo_database import demo_case_files, demo_cases, recorded_settings
from masis.services.maintenance.health import HealthItem, HealthReport
from masis.services.workbench import Workbench
from masis.version import app_root
