"""install.sh, run for real with a DESTDIR."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from monitor.config.file import load
from tests.deploy.helm import REPOSITORY
from tests.support import need

SCRIPT = REPOSITORY / "deploy" / "install.sh"
LOCK = REPOSITORY / "requirements" / "runtime.txt"
# Enough of the lock to build the project and start its command.
ENOUGH = ("click", "setuptools")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]  # a virtual environment is made, and the project built, twice


def run(directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "DESTDIR": str(directory / "root"), "LOCK": str(directory / "lock.txt")}
    quicker = {"PIP_NO_COMPILE": "1"}
    line = ["bash", str(SCRIPT), *arguments]
    return subprocess.run(
        line, env={**environ, **quicker, **variables}, capture_output=True, text=True, timeout=400, check=False
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an installation."""
    found = tmp_path_factory.mktemp("install")
    entries = re.split(r"^(?=\S)", LOCK.read_text(), flags=re.MULTILINE)
    (found / "lock.txt").write_text("".join(each for each in entries if each.partition("==")[0] in ENOUGH))
    done = run(found)
    need("No matching distribution" not in done.stderr and "Connection" not in done.stderr, "a package index")
    assert done.returncode == 0, done.stderr
    return found


def version(root: Path) -> str:
    line = [str(root / "opt/gpuwarden/bin/python"), "-P", "-m", "monitor.cli", "--version"]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, cwd=root).stdout


def test_the_program_the_configuration_and_the_services_are_there(directory: Path) -> None:
    root = directory / "root"
    config = root / "etc/gpuwarden/gpuwarden.yml"
    load(str(config), {})
    assert config.stat().st_mode & 0o777 == 0o640
    assert {each.name for each in (root / "etc/systemd/system").iterdir()} == {
        "gpuwarden-agent.service",
        "gpuwarden-daemon.service",
    }
    # Files below DESTDIR are later below /: no file may contain DESTDIR.
    command = root / "opt/gpuwarden/bin/gpuwarden"
    assert command.read_text().startswith("#!/opt/gpuwarden/bin/python")
    assert os.access(command, os.X_OK)
    assert str(root) not in (root / "opt/gpuwarden/pyvenv.cfg").read_text()


def test_a_second_time_changes_nothing_that_people_wrote_and_uninstalling_leaves_it(directory: Path) -> None:
    root = directory / "root"
    config = root / "etc/gpuwarden/gpuwarden.yml"
    config.write_text("log_level: debug\n")
    again = run(directory)
    assert again.returncode == 0, again.stderr
    assert config.read_text() == "log_level: debug\n"
    gone = run(directory, "--uninstall")
    assert gone.returncode == 0, gone.stderr
    assert not (root / "opt/gpuwarden").exists()
    assert list((root / "etc/systemd/system").iterdir()) == []
    assert config.exists()
    assert run(directory, "--uninstall", "--purge").returncode == 0
    assert not config.parent.exists()


def test_it_removes_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "root/opt/precious").mkdir(parents=True)
    (tmp_path / "root/opt/precious/file").touch()
    done = run(tmp_path, "--uninstall", PREFIX="/opt/precious")
    assert done.returncode == 1
    assert "left alone" in done.stderr
    assert (tmp_path / "root/opt/precious/file").exists()


@pytest.mark.parametrize(("arguments", "prefix"), [(("--nonsense",), "/opt/x"), ((), "relative"), ((), "/")])
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: tuple[str, ...], prefix: str) -> None:
    done = run(tmp_path, *arguments, PREFIX=prefix)
    assert done.returncode != 0
    assert not (tmp_path / "root").exists()
