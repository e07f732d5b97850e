"""Write the generated files that changed."""

from __future__ import annotations

import sys

from docs.generate.pages import ROOT, generated_files, stale_files


def main() -> None:
    """Write each stale file and print its path."""
    files = generated_files()
    for path in stale_files(files):
        (ROOT / path).write_text(files[path], encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
