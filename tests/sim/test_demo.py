"""`gpuwarden demo` as a real process: first page, login link, commands and shutdown."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, run, running
from tests.web.cluster import Client

ODD = re.compile(r'class="c [zixowpg] ?"|<li class="(warning|critical)">')


def shown(url: str) -> str:
    try:
        return get(url)[2]
    except OSError:
        return ""


def test_the_first_useful_screen_is_there_soon_and_one_can_act(tmp_path: Path) -> None:
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    line = command("demo", "--nodes", "6", "--listen", f"127.0.0.1:{port}", "--lang", "en")
    with (tmp_path / "out").open("w") as out, running(line, environ, stdout=out.fileno()) as process:
        url = f"http://127.0.0.1:{port}/"
        wait_until(lambda: shown(url).count('<a class="c ') == 48, 60, "the page shows all cards")
        wait_until(lambda: ODD.search(shown(url)), 60, "an outage is shown")
        body = shown(url)
        robot = re.search(r'href="(http://127\.0\.0\.1:\d+/)" target="_blank" rel="noopener">WeCom', body)
        assert robot is not None
        assert "运维告警群" in get(robot[1])[2]
        printed = (tmp_path / "out").read_text()
        code = re.search(rf"to act   {url}login#code=(\S+)", printed)
        assert code is not None
        assert Client(url).form("/login", {"code": code[1]}).status == 303
        variables = dict(re.findall(r"(GPUWARDEN_\w+)=(\S+)", printed))
        silenced = run("alerts", "silence", "node=gpu01", "--for", "1h", environ=environ | variables)
        assert (silenced.returncode, silenced.stderr) == (0, "")
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0
