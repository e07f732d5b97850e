"""`gpuwarden demo` as a real process: first page and shutdown."""

from __future__ import annotations

import os
import re
import signal

from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, running

ODD = re.compile(r'class="c [zixowpg] ?"|<li class="(warning|critical)">')


def shown(url: str) -> str:
    try:
        return get(url)[2]
    except OSError:
        return ""


def test_the_first_useful_screen_is_there_soon() -> None:
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    with running(command("demo", "--nodes", "6", "--listen", f"127.0.0.1:{port}", "--lang", "en"), environ) as process:
        url = f"http://127.0.0.1:{port}/"
        wait_until(lambda: shown(url).count('<a class="c ') == 48, 60, "the page shows all cards")
        wait_until(lambda: ODD.search(shown(url)), 60, "an outage is shown")
        body = shown(url)
        robot = re.search(r'href="(http://127\.0\.0\.1:\d+/)" target="_blank" rel="noopener">WeCom', body)
        assert robot is not None
        assert "运维告警群" in get(robot[1])[2]
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0
