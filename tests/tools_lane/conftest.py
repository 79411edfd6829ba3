"""These tests need other tools' libraries in a separate environment and are collected only by
``make test-tools``.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if "MASIS_TOOLS" in os.environ else ["test_*"]
