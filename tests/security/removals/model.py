"""Removals as the files next to this module describe them, and what is wrong with a description."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tests.security.threat_model import names_in

# Tests of a whole daemon whose protections overlap: each layer has a removal and a test of its own, and no single
# removal lets the attack through.
LAYERED = frozenset(
    {
        "tests/security/test_unbounded_strings.py::test_a_lying_agent_fills_neither_memory_nor_disk_nor_webhooks",
        "tests/security/test_unbounded_strings.py::test_sixty_pods_with_huge_image_names_fill_neither",
    }
)
FOLDER = Path(__file__).parent
TOP = Path(__file__).parents[3]


class Removal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One protection: the text that implements it, the text without it, and the test that must then fail.

    The test may name one parameter set in brackets.
    """

    protection: str
    test: str
    file: str
    before: str
    after: str

    @property
    def test_function(self) -> str:
        """The test without its parameter set."""
        return self.test.partition("[")[0]


class RemovalFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a file of removals."""

    removal: tuple[Removal, ...]


def load(folder: Path = FOLDER) -> dict[str, tuple[Removal, ...]]:
    """Removals by the name of their file. Raise ValueError if one cannot be read."""
    found = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            plain = tomllib.loads(path.read_text(encoding="utf-8"))
            found[path.name] = msgspec.convert(plain, RemovalFile).removal
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise ValueError(f"{path.name}: {error}") from error
    return found


def applied(removal: Removal, text: str) -> str:
    """The file without the protection. Raise ValueError if the removal does not fit the text."""
    count = text.count(removal.before)
    if count != 1:
        raise ValueError(f"the text to replace occurs {count} times in {removal.file}")
    changed = text.replace(removal.before, removal.after)
    if changed == text:
        raise ValueError("the replacement changes nothing")
    if removal.file.endswith(".py"):
        try:
            compile(changed, removal.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise ValueError(f"the replacement is not Python: {error}") from error
    return changed


def problem_with(removal: Removal, top: Path = TOP) -> str | None:
    """Why the removal cannot be tried, if it cannot."""
    path, _, name = removal.test_function.partition("::")
    if name not in names_in(path.removeprefix("tests/")):
        return "there is no such test"
    if not (top / removal.file).is_file():
        return f"there is no file {removal.file}"
    try:
        applied(removal, (top / removal.file).read_text(encoding="utf-8"))
    except ValueError as error:
        return str(error)
    return None


def without_removal(protections: Mapping[str, str], removals: Iterable[Removal]) -> list[str]:
    """Tests named in the threat model that no removal tries, except those of several layers."""
    tried = LAYERED | {removal.test_function for removal in removals}
    return [f"{test} ({attack})" for test, attack in protections.items() if test not in tried]
