"""These tests need servers that no other test lane installs and are collected only by ``make
test-servers``.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if "MASIS_SERVERS" in os.environ else ["test_*"]
