"""`gpuwarden keys` creates a usable pair of keys and overwrites nothing."""

from __future__ import annotations

import stat
from pathlib import Path

import yaml

from monitor.base.signing import RequestSignature, RequestSigner, RequestVerifier
from tests.support.command import run


def fits(private: str, public: str) -> bool:
    signature = RequestSignature.parse(RequestSigner(private).sign("n", "GET", "/", b"", 1.0))
    return signature is not None and RequestVerifier("n", public).verify(signature, "GET", "/", b"")


def test_a_pair_is_created_once(tmp_path: Path) -> None:
    private, public = tmp_path / "action-private-key", tmp_path / "action-public-key"
    created = run("keys", "--directory", str(tmp_path))
    assert created.returncode == 0, created.stderr
    assert (stat.S_IMODE(private.stat().st_mode), stat.S_IMODE(public.stat().st_mode)) == (0o600, 0o644)
    assert fits(private.read_text(), public.read_text())
    for setting in ("daemon.cleanup.agents.private_key_file", "agent.actions.public_key_file", "docs/security.md"):
        assert setting in created.stdout
    assert private.read_text().strip() not in created.stdout
    before = private.read_text()
    again = run("keys", "--directory", str(tmp_path))
    assert (again.returncode, "exists and is kept" in again.stderr) == (2, True)
    public.unlink()
    half = run("keys", "--directory", str(tmp_path))
    assert (half.returncode, "action-private-key exists and is kept" in half.stderr) == (2, True)
    assert (private.read_text(), public.exists()) == (before, False)


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    missing = run("keys", "--directory", str(tmp_path / "none"))
    assert (missing.returncode, "No such file or directory" in missing.stderr) == (2, True)


def test_objects_of_kubernetes(tmp_path: Path) -> None:
    printed = run("keys", "--kubernetes", "gpuwarden-keys")
    secret, public = yaml.safe_load_all(printed.stdout)
    assert secret["metadata"] == public["metadata"] == {"name": "gpuwarden-keys"}
    assert fits(secret["stringData"]["action-private-key"], public["data"]["action-public-key"])
    wrong = run("keys", "--kubernetes", "a: {b")
    assert (wrong.returncode, "not the name of a Kubernetes object" in wrong.stderr) == (2, True)
