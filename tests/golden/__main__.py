"""Write the golden files, or compare everything but prose with another revision.

`python -m tests.golden --update` writes them. `python -m tests.golden --against REV` reads those of a git revision and
prints where the skeletons differ; the exit code is 1 if any does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.golden.capture import FILES, GOLDEN, difference, stored, update
from tests.golden.skeleton import skeleton

TOP = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--update", action="store_true", help="write the golden files")
    what.add_argument("--against", metavar="REV", help="compare skeletons with those of a git revision")
    given = parser.parse_args(arguments)
    if given.update:
        update()
        print(f"{len(GOLDEN)} files in {FILES.relative_to(TOP)}")
        return 0
    return against(given.against)


def against(revision: str) -> int:
    """Compare the skeletons of the files on disk with those of a revision; 1 on any difference."""
    before = _files_of(revision)
    if not before:
        print(f"{revision} has no golden files")
        return 1
    on_disk = {path.name for path in FILES.iterdir()}
    found = [_difference(name, before.get(name, ""), stored(name)) for name in sorted(before.keys() | on_disk)]
    differing = [each for each in found if each]
    print("\n".join([*differing, f"{len(found)} files compared with {revision}, {len(differing)} differ"]))
    return 1 if differing else 0


def _difference(name: str, before: str, now: str) -> str:
    if not before or not now:
        return f"{name}: {'is new' if now else 'is missing'}"
    return difference(name, skeleton(name, before), skeleton(name, now))


def _files_of(revision: str) -> dict[str, str]:
    listed = _git("ls-tree", "-r", "--name-only", "-z", revision, "--", str(FILES.relative_to(TOP)))
    return {Path(path).name: _git("show", f"{revision}:{path}") for path in listed.split("\0") if path}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=TOP, check=True, capture_output=True).stdout.decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
