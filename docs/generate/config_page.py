"""The page of settings: each section of the file with its settings and a tested example."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

from docs.generate.settings import Setting, settings, written
from docs.generate.tables import code, intro, rows, table, word
from monitor.config.agent import CollectorsConfig

EXAMPLES = Path(__file__).parent / "examples"
RULES = "daemon.rules"  # has a page of its own
# Small sections shown in the table of their parent section.
FOLDED = (".tls", ".pace", ".quiet_hours", ".caps", ".exempt", ".users", ".tokens", ".trusted_header")
HEAD = {"en": ("setting", "type", "default", "meaning"), "zh": ("设置", "类型", "默认值", "含义")}
TOP = {"en": "The whole file", "zh": "整个文件"}
COLLECTORS = {"en": ("collector", "reads", "interval", "limit"), "zh": ("采集器", "读取", "间隔", "时限")}


def page(lang: str) -> str:
    """The page in a language."""
    return intro("configuration", lang) + "".join(
        _section(name, group, lang) for name, group in sections(settings()).items()
    )


def sections(every: Iterable[Setting]) -> dict[str, list[Setting]]:
    """Settings by the section of the page that shows them."""
    grouped: dict[str, list[Setting]] = {"": []}
    for setting in every:
        if setting.section is not None and not setting.path.endswith(FOLDED):
            grouped[setting.path] = []
        else:
            grouped.setdefault(_shown_in(setting.path, grouped), []).append(setting)
    return {name: group for name, group in grouped.items() if group or name == RULES}


def _shown_in(path: str, known: Container[str]) -> str:
    """The nearest enclosing section; each kind of policy has one of its own."""
    if "[kind=" in path:
        return path.partition("].")[0] + "]"
    parent = _parent(path)
    while parent and parent not in known:
        parent = _parent(parent)
    return parent


def _parent(path: str) -> str:
    return path.rpartition(".")[0].removesuffix("[]")


def _section(name: str, group: list[Setting], lang: str) -> str:
    title = code(name) if name else TOP[lang]
    parts = [f"\n## {title}\n"]
    if name and "[kind=" not in name:
        parts.append(f"\n{meaning(name, lang)}\n")
    if group:
        parts.append("\n" + table(HEAD[lang], [_row(setting, lang) for setting in group]))
    if name == "agent.collectors":
        parts.append("\n" + _collectors(lang))
    parts.append(f"\n```yaml\n{example(name)}```\n")
    return "".join(parts)


def example(name: str) -> str:
    """Example of a section. Raises FileNotFoundError if it has none."""
    return (EXAMPLES / f"{name or 'whole'}.yml").read_text(encoding="utf-8")


def _row(setting: Setting, lang: str) -> tuple[str, ...]:
    variable = f"<br>{code(setting.variable)}" if setting.variable else ""
    return (code(setting.path) + variable, kind(setting, lang), default(setting, lang), meaning(setting.path, lang))


def kind(setting: Setting, lang: str) -> str:
    """Type of a setting in words."""
    first, *rest = setting.kind
    if first == "choice":
        return f"{word('kinds.tsv', 'choice', lang)} {', '.join(code(choice) for choice in rest)}"
    if (whole := " ".join(setting.kind)) in rows("kinds.tsv"):
        return word("kinds.tsv", whole, lang)
    return (" " if lang == "en" else "").join(word("kinds.tsv", part, lang) for part in setting.kind)


def default(setting: Setting, lang: str) -> str:
    """Default of a setting in words, or as code."""
    if setting.kind[0] != "choice" and setting.default in rows("kinds.tsv"):
        return word("kinds.tsv", setting.default, lang)
    return word("kinds.tsv", "none", lang) if setting.default == "none" else code(setting.default)


def meaning(path: str, lang: str) -> str:
    """Description of a setting. Raises KeyError if there is none."""
    return word("settings.tsv", key_of(path), lang)


def key_of(path: str) -> str:
    """Row of a path in settings.tsv: its own, else the shared one of its suffix."""
    known = rows("settings.tsv")
    parts = path.split(".")
    suffixes = (f"*.{'.'.join(parts[start:])}" for start in range(1, len(parts)))
    return next((key for key in (path, *suffixes) if key in known), path)


def _collectors(lang: str) -> str:
    lines = []
    for name, field in CollectorsConfig.model_fields.items():
        schedule = field.default
        times = (code(written(seconds, ("duration",))) for seconds in (schedule.interval, schedule.limit))
        lines.append((code(name), word("collectors.tsv", name, lang), *times))
    return table(COLLECTORS[lang], lines)
