"""Marks tests that need a folder which the core works without."""

from __future__ import annotations

from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "masis"
HAS_SCREENING = (PACKAGE / "screening" / "extension.py").exists()
HAS_INTEGRATIONS = (PACKAGE / "integrations" / "extension.py").exists()
needs_screening = pytest.mark.skipif(not HAS_SCREENING, reason="masis/screening isn't here")
needs_integrations = pytest.mark.skipif(
    not HAS_INTEGRATIONS, reason="masis/integrations isn't here"
)
needs_both = pytest.mark.skipif(
    not (HAS_SCREENING and HAS_INTEGRATIONS), reason="the docs describe the whole product"
)
