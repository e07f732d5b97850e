"""Every generated page, by its path."""

from __future__ import annotations

from pathlib import Path

from docs.generate import commands_page, config_page, metrics_page, rules_page

ROOT = Path(__file__).parents[2]


def pages() -> dict[str, str]:
    """Return the text of every generated page by its path in the repository."""
    made = {"docs/commands.md": commands_page.page()}
    for lang, folder in (("en", "docs"), ("zh", "docs/zh")):
        made[f"{folder}/configuration.md"] = config_page.page(lang)
        made[f"{folder}/rules.md"] = rules_page.page(lang)
        made[f"{folder}/metrics.md"] = metrics_page.page(lang)
    return made
