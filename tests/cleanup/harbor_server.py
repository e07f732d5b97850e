"""A fake Harbor by the documentation of its API v2: projects with retention rules, retention runs, gc runs."""

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


def timestamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + ".000Z"


@dataclass
class FakeHarbor:
    """`tags` are, by project, the number of tags that its rules remove and the total."""

    tags: dict[str, tuple[int, int]] = field(default_factory=lambda: {"nlp": (3, 10), "base": (0, 4)})
    garbage: int = 5_000_000
    blobs: int = 7
    polls: int = 2  # polls until a run ends
    fails_as: str | None = None
    reports_bytes: bool = True
    writes: list[tuple[str, Any]] = field(default_factory=list)  # POST requests
    retention_runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    gc_runs: dict[int, dict[str, Any]] = field(default_factory=dict)

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
                    match = harbor.get(path, query)
                    self.reply(200 if match is not None else 404, match)

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
        self._thread.join(60)

    def begin(self, path: str, body: Any) -> str:
        """Start a run, and return its location."""
        self.writes.append((path, body))
        run_id = len(self.writes) + 40
        if path == "/system/gc/schedule":
            assert body["schedule"] == {"type": "Manual"}
            self.gc_runs[run_id] = {"parameters": body["parameters"], "at": time.time(), "polls": 0}
            return f"/api/v2.0/system/gc/{run_id}"
        rule = re.fullmatch(r"/retentions/(\d+)/executions", path)
        assert rule is not None
        self.retention_runs[run_id] = {"rule": int(rule[1]), "dry_run": body["dry_run"], "at": time.time(), "polls": 0}
        return f"/api/v2.0{path}/{run_id}"

    def get(self, path: str, query: dict[str, str]) -> Any:
        if path == "/projects":
            rules = {name: {"retention_id": str(number)} for number, name in enumerate(self.tags, 1) if name != "bare"}
            listed = [{"name": name, "metadata": {"public": "false"} | rules.get(name, {})} for name in self.tags]
            return self._page(listed, query)
        if path == "/system/gc":
            return [self._gc_run(run_id) for run_id in sorted(self.gc_runs, reverse=True)]
        if match := re.fullmatch(r"/system/gc/(\d+)", path):
            return self._gc_run(int(match[1]))
        if match := re.fullmatch(r"/retentions/(\d+)/executions", path):
            runs = [run_id for run_id, run in self.retention_runs.items() if run["rule"] == int(match[1])]
            return self._page([self._retention_run(run_id) for run_id in sorted(runs, reverse=True)], query)
        if match := re.fullmatch(r"/retentions/(\d+)/executions/(\d+)/tasks", path):
            gone, total = list(self.tags.values())[int(match[1]) - 1]
            tasks = [{"repository": "r1", "total": total, "retained": total - gone}]
            return self._page(tasks, query)
        return None

    def _status(self, run: dict[str, Any]) -> str:
        run["polls"] += 1
        if run["polls"] <= self.polls:
            return "Running"
        return self.fails_as or "Success"

    def _retention_run(self, run_id: int) -> dict[str, Any]:
        run = self.retention_runs[run_id]
        return {
            "id": run_id, "policy_id": run["rule"], "dry_run": run["dry_run"], "status": self._status(run),
            "start_time": timestamp(run["at"]), "trigger": "MANUAL",
        }  # fmt: skip

    def _gc_run(self, run_id: int) -> dict[str, Any]:
        run = self.gc_runs[run_id]
        reported = {"freed_space": self.garbage, "purged_blobs": self.blobs} if self.reports_bytes else {}
        return {
            "id": run_id, "job_name": "GARBAGE_COLLECTION", "job_kind": "MANUAL", "job_status": self._status(run),
            "job_parameters": json.dumps(run["parameters"] | reported), "creation_time": timestamp(run["at"]),
        }  # fmt: skip

    def _page(self, items: list[Any], query: dict[str, str]) -> list[Any]:
        number, size = int(query.get("page", "1")), int(query.get("page_size", "10"))
        return items[(number - 1) * size : number * size]
