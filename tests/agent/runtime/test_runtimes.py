"""Discovery of runtimes by sockets, which appear, disappear and are recreated."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.agent.runtime import EngineError, Runtimes
from tests.support import need


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "docker.sock"), str(tmp_path / "containerd.sock")


@pytest.fixture
def runtimes(paths: tuple[str, str]) -> Runtimes:
    return Runtimes(paths[0], (paths[1],))


def listen(path: str) -> None:
    """Create a socket, without a server."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


def sockets(runtimes: Runtimes) -> set[str]:
    return {runtime.socket for runtime in runtimes.present()}


def test_a_node_without_runtimes(runtimes: Runtimes) -> None:
    assert runtimes.present() == ()


def test_a_socket_that_appears_later_is_found_then(runtimes: Runtimes, paths: tuple[str, str]) -> None:
    listen(paths[0])
    assert sockets(runtimes) == {paths[0]}
    listen(paths[1])
    assert sockets(runtimes) == set(paths)
    os.unlink(paths[0])
    assert sockets(runtimes) == {paths[1]}


def test_a_runtime_is_kept_until_its_socket_is_made_anew(runtimes: Runtimes, paths: tuple[str, str]) -> None:
    listen(paths[0])
    first = runtimes.present()
    assert runtimes.present()[0] is first[0]
    os.unlink(paths[0])
    listen(paths[0])
    assert runtimes.present()[0] is not first[0]


def test_one_that_was_dismissed_is_left_out_until_its_socket_is_made_anew(
    runtimes: Runtimes, paths: tuple[str, str]
) -> None:
    listen(paths[1])
    runtimes.dismiss(runtimes.present()[0])
    assert runtimes.present() == ()
    os.unlink(paths[1])
    listen(paths[1])
    assert sockets(runtimes) == {paths[1]}


def test_a_directory_in_place_of_a_socket_is_no_runtime(runtimes: Runtimes, paths: tuple[str, str]) -> None:
    """Docker creates a directory where a container mounts a socket that does not exist."""
    Path(paths[0]).mkdir()
    assert runtimes.present() == ()


@pytest.mark.parametrize("index", [0, 1])
def test_a_socket_in_a_directory_closed_to_us_is_no_missing_socket(
    index: int, runtimes: Runtimes, paths: tuple[str, str]
) -> None:
    need(os.geteuid() == 0, "root, to become somebody else")
    listen(paths[index])
    Path(paths[index]).parent.chmod(0o700)
    os.seteuid(65534)
    try:
        denied = {runtime.socket: runtime for runtime in runtimes.present()}
        with pytest.raises(EngineError, match=f"{paths[index]}: permission denied: run the agent as root"):
            denied[paths[index]].containers()
    finally:
        os.seteuid(0)


def test_one_socket_by_two_paths_is_one_runtime(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "var").symlink_to(run)
    listen(str(run / "c.sock"))
    runtimes = Runtimes(str(tmp_path / "none"), (str(run / "c.sock"), str(tmp_path / "var" / "c.sock")))
    assert sockets(runtimes) == {str(run / "c.sock")}


def test_roots_are_remembered_while_a_runtime_is_down(runtimes: Runtimes, paths: tuple[str, str]) -> None:
    assert runtimes.roots() == ()
    listen(paths[0])
    runtimes.present()[0].root = "/var/lib/docker"  # type: ignore[misc]  # as if it had been queried
    assert runtimes.roots() == ("/var/lib/docker",)
    os.unlink(paths[0])
    assert runtimes.present() == ()
    assert runtimes.roots() == ("/var/lib/docker",)


@pytest.mark.parametrize(
    ("name", "made", "loaded"),
    [("no runtime", (), []), ("Docker alone", (0,), ["http.client"]), ("CRI alone", (1,), ["h2"])],
)
def test_only_what_the_node_has_is_paid_for(
    name: str, made: tuple[int, ...], loaded: list[str], paths: tuple[str, str]
) -> None:
    for index in made:
        listen(paths[index])
    program = (
        "import sys\nfrom monitor.agent.runtime import Runtimes\n"
        f"Runtimes({paths[0]!r}, ({paths[1]!r},)).present()\n"
        "print(*(name for name in ('http.client', 'h2') if name in sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert output.split() == loaded
