"""The use cases: all reads and writes of pages, commands and integrations.

``Workbench.open(path)`` has a service per subject as attributes (see ``workbench.py``) and
``health()``. Every use case that changes something takes an ``Actor``. The values that are passed
and returned are in ``records``.
"""

from masis.schema.actor import ANONYMOUS, Actor
from masis.services.access import OPEN, SIGN_IN_REQUIRED, Access
from masis.services.audits import POLICY
from masis.services.cases import CaseView
from masis.services.demo_database import demo_case_files, demo_cases, recorded_settings
from masis.services.maintenance.health import HealthItem, HealthReport
from masis.services.workbench import Workbench
from masis.version import app_root
