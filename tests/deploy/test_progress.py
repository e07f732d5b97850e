"""What a newcomer sees while `make run` installs: what and how much of it, and what to do when it fails.

pip and apt are stand-ins that print what the real ones print: the real ones need a network, and make lasting changes.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.docs.pages import ROOT

SETUP = ROOT / "deploy/setup"
PIP = """#!/bin/sh
case "$*" in *--require-hashes*) ;; *) exit 0 ;; esac
for number in $(seq 1 25); do echo "Collecting package-$number==1.$number (from -r lock (line $number))"; done
{ending}
"""
GOOD = 'echo "Installing collected packages: package-1, package-2"'
BAD = 'echo "ERROR: Could not find a version that satisfies the requirement package-26" >&2; exit 1'
APT = """#!/bin/sh
[ "$1" = update ] && exit {update}
for number in $(seq 1 12); do echo "Setting up package-$number (1.0) ..."; done
exit {install}
"""


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def install(directory: Path, ending: str) -> subprocess.CompletedProcess[str]:
    """Run the installation of a virtual environment whose pip ends like this."""
    executable(directory / "venv/bin/python", PIP.replace("{ending}", ending))
    (directory / "lock").write_text("".join(f"package-{n}==1.{n} --hash=sha256:00\n" for n in range(1, 26)))
    line = [str(SETUP / "virtualenv"), str(directory / "venv"), str(directory / "lock")]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)


def test_progress_is_readable_without_a_terminal(tmp_path: Path) -> None:
    done = install(tmp_path, GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\r" not in done.stdout
    first, *lines = done.stdout.splitlines()
    assert first.startswith("Installing 25 Python packages from")
    assert lines[:3] == [
        "  10 of 25: package-10==1.10",
        "  20 of 25: package-20==1.20",
        "  all 25 are here; unpacking them, within half a minute",
    ]
    assert lines[-1].startswith("Installed in ")


def test_a_failed_installation_shows_the_reason_and_what_to_do(tmp_path: Path) -> None:
    done = install(tmp_path, BAD)
    assert done.returncode == 1
    assert "Could not find a version" in done.stderr
    assert "HTTPS_PROXY" in done.stderr
    assert "run the same command again" in done.stderr
    assert "Installed in" not in done.stdout


def packages(directory: Path, *, update: int, install: int) -> subprocess.CompletedProcess[str]:
    """Install the packages for benchmarks as root of a machine that has none of them, with this apt."""
    executable(directory / "dpkg-query", "#!/bin/sh\nexit 1\n")
    executable(directory / "id", "#!/bin/sh\necho 0\n")
    executable(directory / "apt-get", APT.replace("{update}", str(update)).replace("{install}", str(install)))
    script = (SETUP / "system-packages").read_text().replace("/usr/sbin/policy-rc.d", str(directory / "policy"))
    executable(directory / "system-packages", script)
    environ = os.environ | {"PATH": f"{directory}:{os.environ['PATH']}"}
    line = [str(directory / "system-packages"), "bench"]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, env=environ)


def test_debian_packages_are_named_and_counted(tmp_path: Path) -> None:
    done = packages(tmp_path, update=0, install=0)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.startswith("Installing 4 Debian packages and what they need")
    assert "strace" in first
    assert second == "  10 set up, the last one package-10 (1.0) ..."
    assert not (tmp_path / "policy").exists()


def test_debian_packages_that_cannot_be_installed_are_named_with_what_to_do(tmp_path: Path) -> None:
    done = packages(tmp_path, update=1, install=1)
    assert done.returncode == 1
    assert "could not be installed" in done.stderr
    assert "strace" in done.stderr
    assert "run the same command again" in done.stderr
