"""A real API server and etcd on loopback, without scheduler or kubelet, for list, watch and write tests."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from tests.lab.variants import chosen
from tests.support import need, wait_until

TOKEN = "admintoken"


def free_ports(count: int) -> list[int]:
    """Unused ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class KubeApiServer:
    """etcd and kube-apiserver. The API server can be killed and restarted on the same port and data."""

    def __init__(self, root: Path) -> None:
        etcd, api = shutil.which("etcd"), chosen().built_programs()["kube-apiserver"]
        need(etcd is not None, "etcd (Debian: etcd-server)")
        need(api is not None, "kube-apiserver (built by the lab, or named by KUBE_APISERVER)")
        self._etcd_binary, self._api_binary = str(etcd), str(api)
        self._root = root
        self._client_port, self._peer_port, self.port = free_ports(3)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = str(root / "kubeconfig")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {TOKEN}"
        self._session.verify = str(root / "certs/apiserver.crt")

    def __enter__(self) -> Self:
        try:
            self._prepare()
            self._start_etcd()
            self.start_api()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop both processes by pid."""
        self._session.close()
        for name in ("api", "etcd"):
            self._end(name, signal.SIGKILL)

    def kill_api(self) -> None:
        """Send SIGKILL to the API server to simulate a crash."""
        self._end("api", signal.SIGKILL)

    def start_api(self) -> None:
        """Start the API server and wait until it is ready."""
        key = str(self._root / "sa.key")
        self._spawn(
            "api",
            self._api_binary,
            f"--etcd-servers=http://127.0.0.1:{self._client_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self._root / 'certs'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self._root / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--etcd-compaction-interval=0",
        )
        wait_until(self.ready, 60, f"the API server is ready (see {self._root / 'api.log'})")

    def ready(self) -> bool:
        """Whether the API server reports ready and has created the default namespace."""
        try:
            return all(self.request("GET", p).status_code == 200 for p in ("/readyz", "/api/v1/namespaces/default"))
        except (requests.RequestException, OSError):
            return False

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send one request as administrator."""
        headers = {"Content-Type": content_type, "Connection": "close"}  # tests kill the server
        return self._session.request(method, self.url + path, json=body, timeout=60, headers=headers)

    def compact(self, resource_version: int) -> None:
        """Compact etcd up to this version, as the API server does every five minutes in production."""
        answer = requests.post(
            f"http://127.0.0.1:{self._client_port}/v3/kv/compaction",
            json={"revision": str(resource_version), "physical": True},
            timeout=60,
        )
        answer.raise_for_status()

    def _prepare(self) -> None:
        openssl = shutil.which("openssl")
        need(openssl is not None, "openssl")
        (self._root / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\nweak,weak,weak,""\n')
        subprocess.run(
            [str(openssl), "genrsa", "-out", str(self._root / "sa.key"), "2048"], check=True, capture_output=True
        )
        Path(self.kubeconfig).write_text(self.config_for(TOKEN))

    def config_for(self, token: str) -> str:
        """A kubeconfig for this server and token."""
        return f"""
apiVersion: v1
kind: Config
clusters: [{{name: lab, cluster: {{server: "{self.url}", certificate-authority: "{self._root}/certs/apiserver.crt"}}}}]
users: [{{name: lab, user: {{token: {token}}}}}]
contexts: [{{name: lab, context: {{cluster: lab, user: lab}}}}]
current-context: lab
"""

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._client_port}", f"http://127.0.0.1:{self._peer_port}"
        self._spawn(
            "etcd",
            self._etcd_binary,
            f"--data-dir={self._root / 'etcd'}",
            "--unsafe-no-fsync=true",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _spawn(self, name: str, *command: str) -> None:
        with (self._root / f"{name}.log").open("ab") as out:
            self._running[name] = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def _end(self, name: str, signum: int) -> None:
        if (process := self._running.pop(name, None)) is not None:
            process.send_signal(signum)
            process.wait(60)
