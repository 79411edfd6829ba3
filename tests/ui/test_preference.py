"""The page Preference: a pair without names, hostile answers, results, and its empty states."""

from __future__ import annotations
