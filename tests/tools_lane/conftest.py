"""These tests need other tools' libraries, in an environment of their own: ``make test-tools``
alone collects them.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if "MASIS_TOOLS" in os.environ else ["test_*"]
