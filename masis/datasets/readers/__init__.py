"""Readers: files that people bring, as records or as errors that name the place and the cure."""

from masis.datasets.readers.cases import CaseLine, likely_misnamed, read_case_lines, read_cases

__all__ = ["CaseLine", "likely_misnamed", "read_case_lines", "read_cases"]
