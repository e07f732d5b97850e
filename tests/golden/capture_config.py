"""The configuration: schema, environment variables, and error messages for invalid files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from monitor.cli.main import main
from monitor.config.file import PREFIX, variables
from monitor.config.root import Config
from tests.golden.schemas import without_class_names
from tests.golden.text import as_json, rows

FIXTURES = Path(__file__).parent.parent / "fixtures" / "config"
OF_THE_MACHINE = {"node_name": "HOST", "timezone": "LOCAL"}  # machine-dependent defaults
VARIABLES = {
    "log-level": {"LOG_LEVEL": "loud"},
    "unknown": {"AGENT__LISTN": "x"},
    "unlike-any": {"XYZ__ABC": "x"},
    "not-a-duration": {"AGENT__PROBE_TIMEOUT": "soon"},
    "unknown-key-inside": {"AGENT__MOUNTS": "[{path: /a, writeable: true}]"},
    "not-yaml": {"AGENT__MOUNTS": "[/a"},
    "whole-and-part": {"AGENT__LISTEN": "127.0.0.1:1", "AGENT__LISTEN__PORT": "2"},
    "token-with-a-space": {"AGENT__TOKEN": "s3 cret"},
}


def schema() -> str:
    """Schema of the configuration file with all defaults; machine-dependent ones are HOST and LOCAL."""
    given, _ = without_class_names(Config.model_json_schema())
    return as_json(_without_machine(given))


def variable_names() -> str:
    """Every environment variable of a setting."""
    return rows([f"{PREFIX}{name}"] for name in variables())


def errors() -> str:
    """Output of `check-config` for each invalid file and variable, as text and as JSON."""
    files = {path.name: _checked(path, {}) for path in sorted(FIXTURES.glob("*.yml"))}
    empty = Path(os.devnull)
    given = {name: {f"{PREFIX}{key}": value for key, value in row.items()} for name, row in VARIABLES.items()}
    return as_json({"files": files, "variables": {name: _checked(empty, row) for name, row in given.items()}})


def _checked(path: Path, environ: dict[str, str]) -> dict[str, Any]:
    text, told = (_run(["check-config", str(path), *more], environ) for more in ([], ["--json"]))
    assert text.exit_code == told.exit_code != 0, path
    found = json.loads(told.stdout.replace(f"{path.parent}/", ""))
    said = text.stderr.replace(f"{path.parent}/", "").splitlines()
    return {"exit_code": text.exit_code, "text": said, **found}


def _run(arguments: Sequence[str], environ: dict[str, str]) -> Any:
    mine: dict[str, str | None] = dict.fromkeys(name for name in os.environ if name.startswith(PREFIX))
    return CliRunner(env=mine | environ).invoke(main, list(arguments))


def _without_machine(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_machine(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: OF_THE_MACHINE[key] if key in OF_THE_MACHINE and isinstance(each, str) else _without_machine(each)
        for key, each in value.items()
    }
