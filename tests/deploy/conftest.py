"""These tests need the proxies from Debian's packages and are collected only by ``make
test-deploy``.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if "MASIS_DEPLOY" in os.environ else ["test_*"]
