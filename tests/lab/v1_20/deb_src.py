"""Debian source packages, without touching the system's apt configuration.

The system's sources are converted to deb-src entries in a private directory that apt is pointed at. The result depends
only on the system's sources, so the conversion is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

APT = Path("/etc/apt")


def one_line_to_source(text: str) -> str:
    """deb-src entries for the entries of a sources.list."""
    lines: dict[str, None] = {}
    for line in text.splitlines():
        kind, _, rest = line.strip().partition(" ")
        if kind in ("deb", "deb-src"):
            lines[f"deb-src {rest.strip()}"] = None
    return "".join(f"{line}\n" for line in lines)


def deb822_to_source(text: str) -> str:
    """deb-src entries for a .sources file."""
    stanzas: dict[str, None] = {}
    for stanza in _stanzas(text):
        lines = ["Types: deb-src" if line.lower().startswith("types:") else line for line in stanza]
        if "Types: deb-src" in lines:
            stanzas["\n".join(lines)] = None
    return "\n".join(f"{stanza}\n" for stanza in stanzas)


def write_sources(system: Path, ours: Path) -> None:
    """Write `ours/sources.list.d` with deb-src entries for the system's apt directory."""
    parts = ours / "sources.list.d"
    parts.mkdir(parents=True, exist_ok=True)
    one_line = _texts([system / "sources.list", *sorted((system / "sources.list.d").glob("*.list"))])
    deb822 = _texts(sorted((system / "sources.list.d").glob("*.sources")))
    # Both formats may list the same repository; apt then only warns.
    (parts / "source-packages.list").write_text(one_line_to_source("\n".join(one_line)))
    (parts / "source-packages.sources").write_text(deb822_to_source("\n\n".join(deb822)))


def apt_options(ours: Path) -> list[str]:
    """apt options that use this directory and none of the system's sources."""
    for directory in (ours / "lists" / "partial", ours / "cache" / "archives" / "partial"):
        directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": ours / "sources.list.d",
        "Dir::State::Lists": ours / "lists",
        "Dir::Cache": ours / "cache",
        # The directory may be in a home that the user `_apt` cannot enter.
        "APT::Sandbox::User": "root",
    }
    return [f"--option={name}={value}" for name, value in settings.items()]


def _stanzas(text: str) -> list[list[str]]:
    """Stanzas of a deb822 file as lines, without comments."""
    stanzas: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip():
            stanzas.append([])
        elif not line.startswith("#"):
            stanzas[-1].append(line)
    return [stanza for stanza in stanzas if stanza]


def _texts(paths: Iterable[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
