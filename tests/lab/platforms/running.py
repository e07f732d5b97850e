"""A platform in a running lab: its definitions, webhooks and processes, removed on exit."""

from __future__ import annotations

import base64
import http
import http.client
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.lab import process
from tests.lab.api import Api
from tests.lab.errors import LabError, wait_for
from tests.lab.http_probes import ANSWER_LIMIT, answers
from tests.lab.lab import Lab
from tests.lab.layout import LOOPBACK
from tests.lab.logs import tail
from tests.lab.platforms import manifests
from tests.lab.platforms.build import MANIFESTS, platforms_cache, programs_dir
from tests.lab.platforms.platform import Place, Platform
from tests.lab.programs import SEARCH
from tests.support import free_port

START_LIMIT_SECONDS = 120.0
REMOVAL_LIMIT_SECONDS = 120.0
STOP_GRACE_SECONDS = 5.0
OPENSSL_LIMIT_SECONDS = 60


@contextmanager
def running(lab: Lab, platform: Platform) -> Iterator[Place]:
    """Run a platform; LabError with the end of a log if it does not start, or if something of it remains."""
    directory = lab.kubeconfig.parent / "platforms" / platform.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    ports = {name: free_port() for name in platform.ports}
    place = Place(directory, programs_dir(platform, platforms_cache()), lab.kubeconfig, ports)
    with ExitStack() as undo:
        _Starting(lab, platform, place, undo).start()
        yield place


class _Starting:
    """Starts a platform; `undo` removes in reverse order what was started.

    So definitions go first, while the platform can still take leave of its objects.
    """

    def __init__(self, lab: Lab, platform: Platform, place: Place, undo: ExitStack) -> None:
        self._lab = lab
        self._api = Api(lab.kubeconfig)
        self._platform = platform
        self._place = place
        self._undo = undo
        self._processes: dict[str, process.Process] = {}

    def start(self) -> None:
        self._undo.callback(self._api.close)
        authority = self._write_files()
        source, address = self._place.programs / MANIFESTS, self._place.address("webhooks")
        hooks = manifests.read(source, self._platform.hooks)
        self._configure_webhooks(manifests.webhook_configurations(hooks, self._platform, address, authority))
        defined = manifests.definitions(
            manifests.read(source, self._platform.definitions), self._platform, address, authority
        )
        self._undo.callback(self._stop)
        names = [each["metadata"]["name"] for each in defined]
        self._undo.callback(self._remove_definitions, [*names, *self._platform.defines])
        for definition in defined:
            self._api.create(manifests.DEFINITIONS, definition)
        self._wait_served(names)
        for name, line in self._platform.commands(self._place).items():
            self._spawn(name, line)
        if self._platform.secret is not None:
            self._wait(self._mount_secret, "its certificate")
        self._wait_served(self._platform.defines)
        for name, path in self._platform.health.items():
            self._wait(partial(self._is_healthy, name, path), f"{name} healthy")
        if self._platform.certificate:
            self._wait(self._accepts_webhooks, "webhooks")

    # Files

    def _write_files(self) -> bytes | None:
        """Write configuration and certificate; return the certificate if there is one."""
        platform, place = self._platform, self._place
        if platform.sample is not None:
            shutil.copy(place.programs / MANIFESTS / platform.sample, place.directory)
        if platform.config is not None:
            place.config.write_text(platform.config(place))
        if not platform.certificate:
            return None
        place.certificates.mkdir(mode=0o700)
        subject = ["-subj", f"/CN={platform.name}", "-addext", f"subjectAltName=IP:{LOOPBACK}"]
        key, certificate = place.certificates / "tls.key", place.certificates / "tls.crt"
        output = ["-keyout", str(key), "-out", str(certificate)]
        line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *output]
        subprocess.run(line, check=True, capture_output=True, timeout=OPENSSL_LIMIT_SECONDS)
        if platform.mounted is not None:
            self._mount({path.name: path.read_bytes() for path in (key, certificate)})
        return certificate.read_bytes()

    def _mount_secret(self) -> bool:
        """Mount the certificate in the secret, as a kubelet would, once the platform has made one."""
        path = f"/api/v1/namespaces/{self._platform.namespace}/secrets/{self._platform.secret}"
        data = self._api.get(path).get("data") or {}
        if "tls.crt" in data:
            self._mount({name: base64.b64decode(content) for name, content in data.items()})
        return "tls.crt" in data

    def _mount(self, files: dict[str, bytes]) -> None:
        """Write files where the platform expects them; the certificate last, because it waits for that."""
        directory = self._platform.mounted
        assert directory is not None
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._undo.callback(_remove, directory)
        for name in sorted(files, key=lambda name: name == "tls.crt"):
            (directory / name).write_bytes(files[name])

    # Objects

    def _configure_webhooks(self, configurations: list[manifests.Object]) -> None:
        platform = self._platform
        if platform.namespace is not None:  # it may be left by an earlier run
            self._api.send("POST", "/api/v1/namespaces", {"metadata": {"name": platform.namespace}})
        if platform.secret is not None:
            path = f"/api/v1/namespaces/{platform.namespace}/secrets"
            self._undo.callback(self._api.delete, f"{path}/{platform.secret}")
            self._api.create(path, {"metadata": {"name": platform.secret}})
        for each in configurations:
            path = manifests.WEBHOOKS[each["kind"]]
            self._undo.callback(self._api.delete, f"{path}/{each['metadata']['name']}")
            self._api.create(path, each)

    def _remove_definitions(self, names: list[str]) -> None:
        """Delete definitions and with them all their objects; LabError if some stay."""
        for name in names:
            self._api.delete(f"{manifests.DEFINITIONS}/{name}")
        for name in names:
            path = f"{manifests.DEFINITIONS}/{name}"
            wait_for(partial(self._is_gone, path), REMOVAL_LIMIT_SECONDS, f"{name} gone")

    def _is_gone(self, path: str) -> bool:
        return self._api.send("GET", path).status_code == http.HTTPStatus.NOT_FOUND

    def _wait_served(self, names: Iterable[str]) -> None:
        for name in names:
            self._wait(partial(self._is_served, name), f"{name} served")

    def _is_served(self, name: str) -> bool:
        defined = self._api.send("GET", f"{manifests.DEFINITIONS}/{name}")
        plural = name.partition(".")[0]
        return defined.ok and all(
            plural in self._resources(version) for version in manifests.served_versions(defined.json())
        )

    def _resources(self, version: str) -> set[str]:
        """Resources that clients find in a version; they may be served a moment earlier."""
        found = self._api.send("GET", version)
        return {each["name"] for each in found.json()["resources"]} if found.ok else set()

    # Processes

    def _spawn(self, name: str, line: list[str]) -> None:
        environment = {
            "HOME": str(self._place.directory),
            "PATH": SEARCH,
            "KUBECONFIG": str(self._place.kubeconfig),
            process.MARK: str(self._lab.kubeconfig.parent),
        }
        self._processes[name] = process.spawn(name, line, environment, self._log(name))

    def _stop(self) -> None:
        process.stop(self._processes.values(), STOP_GRACE_SECONDS)

    def _log(self, name: str) -> Path:
        return self._place.directory / f"{name}.log"

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        def look() -> bool:
            ended = [name for name, known in self._processes.items() if not process.is_running(known)]
            if ended:
                raise LabError(f"{ended[0]} has ended; the end of its log:\n{tail(self._log(ended[0]))}")
            return ready()

        try:
            wait_for(look, START_LIMIT_SECONDS, f"{self._platform.name}: {what}")
        except LabError as error:
            logs = [f"{name}:\n{tail(self._log(name))}" for name in self._processes]
            raise LabError("\n".join([str(error), *logs])) from None

    def _is_healthy(self, name: str, path: str) -> bool:
        return answers(http.client.HTTPConnection(LOOPBACK, self._place.ports[name], timeout=ANSWER_LIMIT), path)

    def _accepts_webhooks(self) -> bool:
        with socket.socket() as connection:
            connection.settimeout(ANSWER_LIMIT)
            return connection.connect_ex((LOOPBACK, self._place.ports["webhooks"])) == os.EX_OK


def _remove(directory: Path) -> None:
    """Remove a directory, and those above it that are empty then."""
    shutil.rmtree(directory, ignore_errors=True)
    with suppress(OSError):
        os.removedirs(directory.parent)
