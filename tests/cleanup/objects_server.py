"""A fake API server that lists objects in pages, by group and version, and fails on configured paths."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

BUILT_IN = {
    "/api/v1": ("pods", "persistentvolumes", "persistentvolumeclaims"),
    "/apis/apps/v1": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "/apis/batch/v1": ("jobs", "cronjobs"),
}


class Objects:
    """The server. `failing` maps paths to an error status."""

    def __init__(self) -> None:
        self._lists: dict[str, list[Any]] = {f"{base}/{kind}": [] for base, kinds in BUILT_IN.items() for kind in kinds}
        self._groups: dict[str, tuple[str, ...]] = {"apps": ("v1",), "batch": ("v1",), "policy": ("v1",)}
        self.failing: dict[str, int] = {}
        self.kubeconfig_at = ""

    def group(self, name: str, *versions: str) -> None:
        """Serve an API group, or other versions of it."""
        self._groups[name] = versions
        for version in versions:
            for plural in ("jobs", "cronjobs"):
                self._lists.setdefault(f"/apis/{name}/{version}/{plural}", [])

    def put(self, path: str, *objects: Any) -> None:
        """Add objects to a list."""
        self._lists[path] += objects

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Status and body for a path."""
        if path in self.failing:
            status = self.failing[path]
            return status, {
                "kind": "Status",
                "status": "Failure",
                "reason": "No",
                "message": "configured",
                "code": status,
            }
        if path.count("/") == 2 and (group := path.removeprefix("/apis/")) in self._groups:
            return 200, {"versions": [{"version": version} for version in self._groups[group]]}
        if path not in self._lists:
            return 404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "no", "code": 404}
        name, _, wanted = query.get("fieldSelector", "").partition("=")
        items = [item for item in self._lists[path] if not name or _field(item, name) == wanted]
        start, limit = int(query.get("continue", "0")), int(query.get("limit", "500"))
        more = str(start + limit) if start + limit < len(items) else ""
        return 200, {"metadata": {"resourceVersion": "1", "continue": more}, "items": items[start : start + limit]}

    def kubeconfig(self, folder: Path) -> str:
        """Write a kubeconfig for this server, and return its path."""
        path = folder / "kubeconfig"
        path.write_text(
            "{apiVersion: v1, kind: Config, users: [{name: u, user: {}}], current-context: c,"
            f' clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{self._server.server_port}"}}}}],'
            " contexts: [{name: c, context: {cluster: k, user: u}}]}"
        )
        return str(path)

    def __enter__(self) -> Self:
        objects = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one piece

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                status, content = objects.answer(parts.path, query)
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


def _field(item: Any, name: str) -> str:
    first, second = name.split(".")
    return str((item.get(first) or {}).get(second) or "")
