"""Write the dashboards into `dashboards/<language>/`."""

from __future__ import annotations

from pathlib import Path

from dashboards.generate import documents
from dashboards.generate.files import text

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write every file; one that is not made any more is removed."""
    made = {ROOT / lang / name: text(document) for (lang, name), document in documents().items()}
    for old in {path for lang in {path.parent for path in made} for path in lang.glob("*.json")} - set(made):
        old.unlink()
    for path, content in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
