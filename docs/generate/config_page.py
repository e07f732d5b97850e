"""The page of settings: a section for each part of the file, with its settings and an example that is tested."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

from docs.generate.settings import Setting, settings, written
from docs.generate.tables import code, intro, rows, table, word
from monitor.config.agent import CollectorsConfig

EXAMPLES = Path(__file__).parent / "examples"
RULES = "daemon.rules"  # listed on a page of their own
# Small sections that are shown in the table of the section around them.
FOLDED = (".tls", ".pace", ".quiet_hours", ".caps", ".exempt", ".users", ".tokens", ".trusted_header")
HEAD = {"en": ("setting", "type", "default", "meaning"), "zh": ("设置", "类型", "默认值", "含义")}
TOP = {"en": "The whole file", "zh": "整个文件"}
COLLECTORS = {"en": ("collector", "reads", "interval", "limit"), "zh": ("采集器", "读取", "间隔", "时限")}


def page(lang: str) -> str:
    """Given a language, return the page."""
    return intro("configuration", lang) + "".join(
        _section(name, group, lang) for name, group in sections(settings()).items()
    )


def sections(every: Iterable[Setting]) -> dict[str, list[Setting]]:
    """Given all settings, return them by the section of the page that they are shown in, in their order."""
    found: dict[str, list[Setting]] = {"": []}
    for setting in every:
        if setting.section is not None and not setting.path.endswith(FOLDED):
            found[setting.path] = []
        else:
            found.setdefault(_home(setting.path, found), []).append(setting)
    return {name: group for name, group in found.items() if group or name == RULES}


def _home(path: str, known: Container[str]) -> str:
    """Given a path, return the nearest section around it; each kind of policy has one of its own."""
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
        parts.append("\n" + table(HEAD[lang], [_line(each, lang) for each in group]))
    if name == "agent.collectors":
        parts.append("\n" + _collectors(lang))
    parts.append(f"\n```yaml\n{example(name)}```\n")
    return "".join(parts)


def example(name: str) -> str:
    """Given a section, return its example. Raise FileNotFoundError if it has none."""
    return (EXAMPLES / f"{name or 'whole'}.yml").read_text(encoding="utf-8")


def _line(setting: Setting, lang: str) -> tuple[str, ...]:
    variable = f"<br>{code(setting.variable)}" if setting.variable else ""
    return (code(setting.path) + variable, kind(setting, lang), default(setting, lang), meaning(setting.path, lang))


def kind(setting: Setting, lang: str) -> str:
    """Given a setting, return its type in words."""
    first, *rest = setting.kind
    if first == "choice":
        return f"{word('kinds.tsv', 'choice', lang)} {', '.join(code(each) for each in rest)}"
    if (whole := " ".join(setting.kind)) in rows("kinds.tsv"):
        return word("kinds.tsv", whole, lang)
    return (" " if lang == "en" else "").join(word("kinds.tsv", each, lang) for each in setting.kind)


def default(setting: Setting, lang: str) -> str:
    """Given a setting, return its default in words, or as code."""
    if setting.kind[0] != "choice" and setting.default in rows("kinds.tsv"):
        return word("kinds.tsv", setting.default, lang)
    return word("kinds.tsv", "none", lang) if setting.default == "none" else code(setting.default)


def meaning(path: str, lang: str) -> str:
    """Given a path, return what it means. Raise KeyError if nobody has written that down."""
    return word("settings.tsv", key_of(path), lang)


def key_of(path: str) -> str:
    """Given a path, return its row in settings.tsv: its own, else one for all paths that end like it."""
    known = rows("settings.tsv")
    parts = path.split(".")
    endings = (f"*.{'.'.join(parts[start:])}" for start in range(1, len(parts)))
    return next((key for key in (path, *endings) if key in known), path)


def _collectors(lang: str) -> str:
    lines = []
    for name, field in CollectorsConfig.model_fields.items():
        schedule = field.default
        times = (code(written(each, ("duration",))) for each in (schedule.interval, schedule.limit))
        lines.append((code(name), word("collectors.tsv", name, lang), *times))
    return table(COLLECTORS[lang], lines)
