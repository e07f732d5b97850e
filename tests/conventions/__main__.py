"""Print what the conventions object to: `python -m tests.conventions [FOLDER...]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conventions import constants, prose
from tests.conventions.sources import ROOT, python_files


def main(folders: list[str]) -> int:
    """Print a line for each objection, and return the exit code."""
    lines = []
    for path in python_files(*(folders or ["monitor"])):
        place = path.relative_to(ROOT)
        lines += [f"{place}:{line}: {marker!r}" for line, marker in prose.of_python(path)]
        if place.parts[0] == "monitor":
            lines += [f"{place}:{line}: {name} has no unit" for line, name in constants.unitless(path)]
    for folder in folders:
        if Path(ROOT / folder).is_dir():
            for path in sorted((ROOT / folder).rglob("*.md")):
                lines += [f"{path.relative_to(ROOT)}:{line}: {marker!r}" for line, marker in prose.of_text(path)]
    print(*lines, sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
