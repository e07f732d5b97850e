"""Debian's source packages, without touching the system's own apt configuration.

The system's sources are read, turned into sources of source packages and written to a directory of our own, with which
apt then works. The result depends only on the system's sources, so doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

APT = Path("/etc/apt")


def one_line_to_source(text: str) -> str:
    """Given a sources.list, return one that names the same places for source packages."""
    lines: dict[str, None] = {}
    for line in text.splitlines():
        kind, _, rest = line.strip().partition(" ")
        if kind in ("deb", "deb-src"):
            lines[f"deb-src {rest.strip()}"] = None
    return "".join(f"{line}\n" for line in lines)


def deb822_to_source(text: str) -> str:
    """Given a .sources file, return one that names the same places for source packages."""
    stanzas: dict[str, None] = {}
    for stanza in _stanzas(text):
        lines = ["Types: deb-src" if line.lower().startswith("types:") else line for line in stanza]
        if "Types: deb-src" in lines:
            stanzas["\n".join(lines)] = None
    return "\n".join(f"{stanza}\n" for stanza in stanzas)


def write_sources(system: Path, ours: Path) -> None:
    """Given the system's apt directory, write `ours/sources.list.d` with the same places for source packages."""
    parts = ours / "sources.list.d"
    parts.mkdir(parents=True, exist_ok=True)
    one_line = _texts([system / "sources.list", *sorted((system / "sources.list.d").glob("*.list"))])
    deb822 = _texts(sorted((system / "sources.list.d").glob("*.sources")))
    # The formats may name the same place twice between them; apt then warns and carries on.
    (parts / "source-packages.list").write_text(one_line_to_source("\n".join(one_line)))
    (parts / "source-packages.sources").write_text(deb822_to_source("\n\n".join(deb822)))


def apt_options(ours: Path) -> list[str]:
    """Given our apt directory, return the options with which apt uses it and nothing of the system's sources."""
    for directory in (ours / "lists" / "partial", ours / "cache" / "archives" / "partial"):
        directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": ours / "sources.list.d",
        "Dir::State::Lists": ours / "lists",
        "Dir::Cache": ours / "cache",
        # The directory may be in a home that apt's own user cannot enter.
        "APT::Sandbox::User": "root",
    }
    return [f"--option={name}={value}" for name, value in settings.items()]


def _stanzas(text: str) -> list[list[str]]:
    """Given a deb822 file, return its stanzas as lines, comments left out."""
    stanzas: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip():
            stanzas.append([])
        elif not line.startswith("#"):
            stanzas[-1].append(line)
    return [stanza for stanza in stanzas if stanza]


def _texts(paths: Iterable[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
