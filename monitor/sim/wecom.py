"""Simulated WeCom group robot: accepts messages like the real one, and shows them like the app."""

from __future__ import annotations

import asyncio
import html
import re
import time
from collections import deque
from dataclasses import dataclass

import msgspec

from monitor.sim.http import SimRequest, SimServer, write_response

KEY = "demo"
MAX_PER_MINUTE = 20
MAX_BYTES = {"markdown": 4096, "text": 2048}  # bytes
MAX_MESSAGES = 200


@dataclass(frozen=True)
class SimMessage:
    """A received message."""

    at: float
    kind: str
    text: str


class SimRobot:
    """Serves the webhook of the robot, and its messages at `/`."""

    def __init__(self) -> None:
        self.messages: deque[SimMessage] = deque(maxlen=MAX_MESSAGES)
        self._arrived: deque[float] = deque()
        self._server = SimServer(self._answer)
        self.stop = self._server.stop

    async def start(self) -> int:
        """Listen on loopback, and return the port."""
        return await self._server.start(["127.0.0.1"])

    async def _answer(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        if request.method == "POST" and request.path == "/cgi-bin/webhook/send":
            code, message = self._receive(request)
            write_response(writer, msgspec.json.encode({"errcode": code, "errmsg": message}))
        elif request.path == "/":
            write_response(writer, chat_page(list(self.messages)).encode(), content_type="text/html; charset=utf-8")
        else:
            write_response(writer, b"not found", 404, "text/plain")

    def _receive(self, request: SimRequest) -> tuple[int, str]:
        """Error code and message of the real robot."""
        if request.query.get("key") != KEY:
            return 93000, "invalid webhook url"
        try:
            sent = msgspec.json.decode(request.body)
            kind = sent["msgtype"]
            text = str(sent[kind]["content"])
        except (msgspec.MsgspecError, KeyError, TypeError):
            return 40008, "invalid message type"
        if len(text.encode()) > MAX_BYTES.get(kind, 0):
            return 40058, "content exceeds the limit"
        now = time.monotonic()
        while self._arrived and now - self._arrived[0] >= 60:
            self._arrived.popleft()
        if len(self._arrived) >= MAX_PER_MINUTE:
            return 45009, "api freq out of limit"
        self._arrived.append(now)
        self.messages.append(SimMessage(time.time(), kind, text))
        return 0, "ok"


# The markdown that WeCom supports, as HTML. Everything else is text.
_SHOWN = (
    (
        re.compile(r"&lt;font color=&quot;(info|comment|warning)&quot;&gt;(.*?)&lt;/font&gt;"),
        r'<span class="\1">\2</span>',
    ),
    (re.compile(r"\*\*(.+?)\*\*"), r"<b>\1</b>"),
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)"), r'<a href="\2">\1</a>'),
    (re.compile(r"&lt;@([^&]+)&gt;"), r'<span class="mention">@\1</span>'),
)
_STYLE = """
body{margin:0;background:#ebebeb;font:15px/1.5 system-ui,"PingFang SC","Noto Sans CJK SC",sans-serif;color:#191919}
header{background:#fff;border-bottom:1px solid #ddd;padding:12px 16px;font-weight:600;position:sticky;top:0}
main{max-width:44rem;margin:0 auto;padding:12px}
article{display:flex;gap:10px;margin:14px 0}
article>i{flex:none;width:40px;height:40px;border-radius:6px;background:#3370cc;color:#fff;font-style:normal;
display:grid;place-items:center;font-weight:600}
article>div{background:#fff;border-radius:8px;padding:10px 12px;overflow-wrap:anywhere}
time{display:block;color:#888;font-size:12px}
.info{color:#0a9d4d}.comment{color:#888}.warning{color:#d9730d}.mention,a{color:#2f6fd6}
code{background:#f3f3f3;border-radius:4px;padding:0 4px;font-size:13px}
"""


def markdown_html(text: str) -> str:
    """A message as HTML. Markup in names is escaped."""
    out = html.escape(text)
    for pattern, replacement in _SHOWN:
        out = pattern.sub(replacement, out)
    return out.replace("\n", "<br>")


def chat_page(messages: list[SimMessage]) -> str:
    """HTML page of the messages, newest first."""
    rows = []
    for message in reversed(messages):
        clock = time.strftime("%H:%M:%S", time.localtime(message.at))
        body = (
            markdown_html(message.text)
            if message.kind == "markdown"
            else html.escape(message.text).replace("\n", "<br>")
        )
        rows.append(f"<article><i>GW</i><div><time>gpuwarden {clock}</time>{body}</div></article>")
    empty = "<p>Nothing yet: the first outage is seconds away. / 还没有消息</p>"
    return (
        '<!doctype html><html lang="zh"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="refresh" content="3"><title>WeCom</title><style>{_STYLE}</style>'
        f"<header>运维告警群 ({len(messages)})</header><main>{''.join(rows) or empty}</main></html>"
    )
