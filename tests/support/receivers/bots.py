"""Group bots of WeCom, DingTalk, Feishu and Slack: their checks, the order of these, and their responses.

Written from the vendors' documentation and user reports. `force` makes a bot return a fixed error code.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any

from tests.support.receivers.http_server import Asked, LocalServer

WECOM_LIMITS = {"text": 2048, "markdown": 4096}  # bytes
KEY = "693a91f6-7aoc-4bc4-97a0-0ec2sifa5aaa"


class RateLimit:
    """Sliding-window rate limit; after exceeding it, requests are rejected for `block` seconds."""

    def __init__(self, count: int, window: float = 60.0, block: float = 0.0) -> None:
        self._count, self._window, self._block = count, window, block
        self._taken: list[float] = []
        self._blocked_until = 0.0

    def takes(self, now: float) -> bool:
        self._taken = [at for at in self._taken if at > now - self._window]
        if now < self._blocked_until:
            return False
        if len(self._taken) >= self._count:
            self._blocked_until = now + self._block
            return False
        self._taken.append(now)
        return True


class Bot(LocalServer):
    def __init__(self, clock: Callable[[], float] = time.time, **more: Any) -> None:
        super().__init__(**more)
        self.clock = clock
        self.force: Any = None
        self.taken: list[Any] = []


class WeComBot(Bot):
    """qyapi.weixin.qq.com/cgi-bin/webhook/send."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.rate = RateLimit(20)
        self.url = f"{self.base}/cgi-bin/webhook/send?key={KEY}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        code, words = self._judge(asked)
        return 200, {"errcode": code, "errmsg": words}

    def _judge(self, asked: Asked) -> tuple[int, str]:
        if self.force is not None:
            return self.force, "as the test wants it"
        if asked.query.get("key") != KEY:
            return 93000, "invalid webhook url, hint: [1600000000_1], more info at https://open.work.weixin.qq.com"
        if b"\\u" in asked.body:
            return 40033, "invalid unicode"
        message = asked.json
        kind = message.get("msgtype")
        if kind not in WECOM_LIMITS:
            return 40008, "invalid message type"
        content = message[kind].get("content", "")
        if not content:
            return 44004, "empty content"
        if len(content.encode()) > WECOM_LIMITS[kind]:
            return 40058, f"{kind}.content exceed max length {WECOM_LIMITS[kind]}"
        if not self.rate.takes(self.clock()):
            return 45009, "api freq out of limit"
        self.taken.append(message)
        return 0, "ok"


class DingTalkBot(Bot):
    """oapi.dingtalk.com/robot/send, optionally with secret and keyword."""

    def __init__(self, secret: str | None = None, keyword: str | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.secret, self.keyword = secret, keyword
        self.rate = RateLimit(20, block=600.0)
        self.url = f"{self.base}/robot/send?access_token={KEY}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        code, words = self._judge(asked)
        return 200, {"errcode": code, "errmsg": words}

    def _judge(self, asked: Asked) -> tuple[int, str]:
        if self.force is not None:
            return self.force, "as the test wants it"
        if asked.query.get("access_token") != KEY:
            return 300005, "token is not exist"
        if self.secret is not None and (wrong := self._seal(self.secret, asked.query)):
            return 310000, wrong
        if len(asked.body) > 20_000:
            return 460101, "message too long, exceed 20000 bytes"
        message = asked.json
        if message["msgtype"] != "markdown" or not message["markdown"]["title"] or not message["markdown"]["text"]:
            return 40035, "missing parameter"
        if self.keyword is not None and self.keyword not in asked.body.decode():
            return 310000, "keywords not in content"
        if not self.rate.takes(self.clock()):
            return 130101, "send too fast, exceed 20 times per minute"
        self.taken.append(message)
        return 0, "ok"

    def _seal(self, secret: str, query: dict[str, str]) -> str | None:
        timestamp = query.get("timestamp", "")
        if not timestamp.isdigit() or abs(int(timestamp) / 1000 - self.clock()) > 3600:
            return "invalid timestamp"
        digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
        return None if query.get("sign") == base64.b64encode(digest).decode() else "sign not match"


class FeishuBot(Bot):
    """open.feishu.cn/open-apis/bot/v2/hook/<token>, optionally with secret and keyword."""

    def __init__(self, secret: str | None = None, keyword: str | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.secret, self.keyword = secret, keyword
        self.minute, self.second = RateLimit(100), RateLimit(5, window=1.0)
        self.url = f"{self.base}/open-apis/bot/v2/hook/{KEY}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        code, words = self._judge(asked)
        if code:
            return 200, {"code": code, "msg": words, "data": {}}
        return 200, {"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}, "msg": "success"}

    def _judge(self, asked: Asked) -> tuple[int, str]:
        if self.force is not None:
            return self.force, "as the test wants it"
        if not asked.path.endswith(f"/hook/{KEY}"):
            return 19001, "param invalid: incoming webhook access token invalid"
        if len(asked.body) > 20 * 1024:
            return 9499, "Bad Request"
        message = asked.json
        if self.secret is not None and not self._sealed(self.secret, message):
            return 19021, "sign match fail or timestamp is not within one hour from current time"
        if self.keyword is not None and self.keyword not in asked.body.decode():
            return 19024, "Key Words Not Found"
        if message["msg_type"] != "interactive" or message["card"]["elements"][0]["tag"] != "markdown":
            return 11246, "parse card json err"
        if not (self.minute.takes(self.clock()) and self.second.takes(self.clock())):
            return 11232, "frequency limited psm[lark.oapi.app_platform_runtime]appID[1500]"
        self.taken.append(message)
        return 0, "success"

    def _sealed(self, secret: str, message: dict[str, Any]) -> bool:
        timestamp = str(message.get("timestamp", ""))
        if not timestamp.isdigit() or abs(int(timestamp) - self.clock()) > 3600:
            return False
        digest = hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
        return bool(message.get("sign") == base64.b64encode(digest).decode())


class SlackHook(Bot):
    """hooks.slack.com/services/…: plain-text bodies and meaningful HTTP status codes."""

    PATH = f"/services/T0000/B0000/{KEY}"

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.rate = RateLimit(1, window=1.0)
        self.url = f"{self.base}{self.PATH}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        if asked.path != self.PATH:
            return 404, b"no_service"
        message = asked.json
        blocks = [block for each in message.get("attachments", ()) for block in each["blocks"]]
        if not blocks:
            return 400, b"no_text"
        if any(len(block["text"]["text"]) > 3000 for block in blocks):
            return 400, b"invalid_attachments"
        if not self.rate.takes(self.clock()):
            return 429, b"rate_limited"
        self.taken.append(message)
        return 200, b"ok"
