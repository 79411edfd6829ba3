"""Measure how well proposed groups of free notes agree with the failure modes that they were written for.

    python benchmarks/grouping_notes.py [FILE ...]

A line of a file is ``mode|question|note``; notes of the mode ``noise`` name no failure. Thresholds
were chosen on ``tuned.txt``. ``held_out.txt`` has other subjects and modes.

- adjusted Rand index: 1 if the groups are the modes, 0 as by chance. A note in no group and a note
  of noise are groups of their own.
- pure: the share of all notes that are in a group of which at least 80% have one mode, which isn't
  noise.
- nearest: the average share of the five notes nearest to a note that have its mode, for modes of
  more than five notes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.offline.inference.encoder import load_encoder
from masis.services.modes.concepts import Floats
from masis.services.modes.grouping import (
    PatternGroup,
    PatternText,
    group_patterns,
    meaning_of,
    text_to_encode,
)
from masis.store.reviews.observations import pattern_of

NOTES = Path(__file__).parent / "grouping_notes"
NOISE = "noise"
PURE = 0.8
NEAREST = 5


class Agreement(NamedTuple):
    """How well groups agree with modes. Shares are of all notes, ``noise`` of those of noise."""

    rand: float
    pure: float
    grouped: float
    noise: float
    groups: tuple[PatternGroup, ...]


def read_notes(path: Path) -> tuple[list[str], list[str]]:
    """Return the modes and the notes of a file."""
    rows = [line.split("|") for line in path.read_text(encoding="utf-8").splitlines()]
    return [mode for mode, _, _ in rows], [note for _, _, note in rows]


def encode(patterns: Sequence[PatternText]) -> Floats:
    """Return the vectors of patterns."""
    encoder = load_encoder()
    return np.stack([encoder.encode(text_to_encode(pattern.text)) for pattern in patterns])


def measure(path: Path) -> Agreement:
    """Group the notes of a file, and compare the groups with their modes."""
    modes, notes = read_notes(path)
    patterns = [PatternText(number, pattern_of(note), 1) for number, note in enumerate(notes)]
    groups = group_patterns(patterns, encode)
    of_note = {seq: number for number, group in enumerate(groups) for seq in group.patterns}
    alone = range(len(notes), 2 * len(notes))
    proposed = [of_note.get(number, alone[number]) for number in range(len(notes))]
    wanted = [f"{mode} {number}" if mode == NOISE else mode for number, mode in enumerate(modes)]
    pure = 0
    for group in groups:
        [(mode, count)] = Counter(modes[seq] for seq in group.patterns).most_common(1)
        if mode != NOISE and count >= PURE * len(group.patterns):
            pure += len(group.patterns)
    is_noise: NDArray[np.bool_] = np.array(modes) == NOISE
    is_grouped = np.array([number in of_note for number in range(len(notes))])
    return Agreement(
        rand=float(adjusted_rand_score(wanted, proposed)),
        pure=pure / len(notes),
        grouped=float(is_grouped.mean()),
        noise=float(is_grouped[is_noise].mean()),
        groups=tuple(groups),
    )


def measure_nearest(path: Path) -> float:
    """Return the average share of the nearest notes of a file that have a note's mode."""
    modes, notes = read_notes(path)
    patterns = [PatternText(number, pattern_of(note), 1) for number, note in enumerate(notes)]
    vectors = meaning_of(encode(patterns))
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1)
    nearest = np.argsort(-similarity, axis=1)[:, :NEAREST]
    sizes = Counter(modes)
    return float(
        np.mean(
            [
                sum(modes[other] == mode for other in nearest[number]) / NEAREST
                for number, mode in enumerate(modes)
                if mode != NOISE and sizes[mode] > NEAREST
            ]
        )
    )


def main() -> None:
    """Print the agreement for each file, and its groups."""
    for path in [Path(name) for name in sys.argv[1:]] or sorted(NOTES.glob("*.txt")):
        found = measure(path)
        print(
            f"{path.stem}: adjusted Rand index {found.rand:.2f}, {found.pure:.0%} of the notes in"
            f" a pure group, {found.grouped:.0%} in some group ({found.noise:.0%} of the noise);"
            f" {measure_nearest(path):.0%} of the nearest notes have the same mode"
        )
        for group in found.groups:
            print(f"  {group.observations:3} {group.heading}")


if __name__ == "__main__":
    main()
