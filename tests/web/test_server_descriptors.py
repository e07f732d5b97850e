"""The web server continues once descriptors are available again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.security.flood import HEALTH_CHECK, connect, status_of
from tests.support import wait_until


def test_a_full_server_recovers_from_the_lack_of_descriptors(tmp_path: Path) -> None:
    """Without descriptors asyncio logs each attempt to accept a connection, by default 2,048 times a second."""
    log = tmp_path / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", WITHOUT_DESCRIPTORS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            address = ("127.0.0.1", int(process.stdout.readline()))
            with connect(address) as client:
                client.sendall(HEALTH_CHECK)
                wait_until(lambda: "accept" in log.read_text(), 30, "it cannot accept")
                process.stdin.write(b"\n")
                process.stdin.flush()
                assert status_of(client.recv(4096)) == 200
        finally:
            process.kill()
            process.communicate()
    assert log.stat().st_size < 64 * 1024


WITHOUT_DESCRIPTORS = """
import asyncio, os, resource, socket, sys
from starlette.responses import Response
from monitor.base import logs
from monitor.web.server import WebServer
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
logs.setup("info")
listening = socket.create_server(("127.0.0.1", 0))
web = WebServer(Response("ok"), listening)
web.start()
while not web._server.started:
    pass
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    print(listening.getsockname()[1], flush=True)
sys.stdin.readline()
loop = web._server.servers[0].get_loop()
asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()  # the event loop has given up for now
for descriptor in held:
    os.close(descriptor)
sys.stdin.readline()
"""
