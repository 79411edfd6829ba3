"""These tests need servers that no other lane installs: they are collected by ``make test-servers``
alone.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if "MASIS_SERVERS" in os.environ else ["test_*"]
