"""A Harbor as its API v2 is documented: projects with retention rules, executions that take a while, and a gc."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD = "robot$cleanup", "p4ss-word"


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + ".000Z"


@dataclass
class FakeHarbor:
    """`tags` are those of each project's repositories that the rules of the project would remove, and all."""

    tags: dict[str, tuple[int, int]] = field(default_factory=lambda: {"nlp": (3, 10), "base": (0, 4)})
    garbage: int = 5_000_000
    blobs: int = 7
    looks: int = 2  # how often one has to look until something has ended
    fails_as: str | None = None
    tells_bytes: bool = True
    writes: list[tuple[str, Any]] = field(default_factory=list)  # what was asked to be begun
    executions: dict[int, dict[str, Any]] = field(default_factory=dict)
    collections: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        harbor = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
                if self.headers.get("Authorization") != wanted:
                    self.reply(401, {"errors": [{"code": "UNAUTHORIZED", "message": "unauthorized"}]})
                    return
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                path = parts.path.removeprefix("/api/v2.0")
                if self.command == "POST":
                    self.reply(201, None, harbor.begin(path, json.loads(body)))
                else:
                    found = harbor.get(path, query)
                    self.reply(200 if found is not None else 404, found)

            do_GET = do_POST = handle_any

            def reply(self, status: int, content: Any, location: str | None = None) -> None:
                body = b"" if content is None else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if location is not None:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def begin(self, path: str, body: Any) -> str:
        """Begin something, and return where it is."""
        self.writes.append((path, body))
        own = len(self.writes) + 40
        if path == "/system/gc/schedule":
            assert body["schedule"] == {"type": "Manual"}
            self.collections[own] = {"parameters": body["parameters"], "at": time.time(), "looks": 0}
            return f"/api/v2.0/system/gc/{own}"
        rule = re.fullmatch(r"/retentions/(\d+)/executions", path)
        assert rule is not None
        self.executions[own] = {"rule": int(rule[1]), "dry_run": body["dry_run"], "at": time.time(), "looks": 0}
        return f"/api/v2.0{path}/{own}"

    def get(self, path: str, query: dict[str, str]) -> Any:
        if path == "/projects":
            rules = {name: {"retention_id": str(number)} for number, name in enumerate(self.tags, 1) if name != "bare"}
            listed = [{"name": name, "metadata": {"public": "false"} | rules.get(name, {})} for name in self.tags]
            return self._page(listed, query)
        if path == "/system/gc":
            return [self._collection(own) for own in sorted(self.collections, reverse=True)]
        if found := re.fullmatch(r"/system/gc/(\d+)", path):
            return self._collection(int(found[1]))
        if found := re.fullmatch(r"/retentions/(\d+)/executions", path):
            mine = [own for own, each in self.executions.items() if each["rule"] == int(found[1])]
            return self._page([self._execution(own) for own in sorted(mine, reverse=True)], query)
        if found := re.fullmatch(r"/retentions/(\d+)/executions/(\d+)/tasks", path):
            gone, total = list(self.tags.values())[int(found[1]) - 1]
            tasks = [{"repository": "r1", "total": total, "retained": total - gone}]
            return self._page(tasks, query)
        return None

    def _status(self, each: dict[str, Any]) -> str:
        each["looks"] += 1
        if each["looks"] <= self.looks:
            return "Running"
        return self.fails_as or "Success"

    def _execution(self, own: int) -> dict[str, Any]:
        each = self.executions[own]
        return {
            "id": own, "policy_id": each["rule"], "dry_run": each["dry_run"], "status": self._status(each),
            "start_time": moment(each["at"]), "trigger": "MANUAL",
        }  # fmt: skip

    def _collection(self, own: int) -> dict[str, Any]:
        each = self.collections[own]
        told = {"freed_space": self.garbage, "purged_blobs": self.blobs} if self.tells_bytes else {}
        return {
            "id": own, "job_name": "GARBAGE_COLLECTION", "job_kind": "MANUAL", "job_status": self._status(each),
            "job_parameters": json.dumps(each["parameters"] | told), "creation_time": moment(each["at"]),
        }  # fmt: skip

    def _page(self, items: list[Any], query: dict[str, str]) -> list[Any]:
        number, size = int(query.get("page", "1")), int(query.get("page_size", "10"))
        return items[(number - 1) * size : number * size]
