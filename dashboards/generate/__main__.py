"""Write the dashboards into `dashboards/<language>/`."""

from __future__ import annotations

from pathlib import Path

from dashboards.generate import documents, text

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write every file, and remove files of dashboards that no longer exist."""
    generated = {ROOT / lang / name: text(document) for (lang, name), document in documents().items()}
    for stale in {path for folder in {path.parent for path in generated} for path in folder.glob("*.json")} - set(
        generated
    ):
        stale.unlink()
    for path, content in generated.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
