"""Write every generated page. `python -m docs.generate`, or `make docs`."""

from __future__ import annotations

import sys

from docs.generate.pages import ROOT, pages


def main() -> None:
    """Write each page and name those that changed."""
    for path, text in pages().items():
        file = ROOT / path
        before = file.read_text(encoding="utf-8") if file.exists() else None
        if text != before:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path} written\n")


if __name__ == "__main__":
    main()
