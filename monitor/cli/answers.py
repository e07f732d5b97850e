"""Reads the answers to the questions of `gpuwarden init`. An AnswerError says in the user's language what to write."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from monitor.base.localtime import zone
from monitor.base.text import clean, shorten
from monitor.config.policies import Root
from monitor.config.receivers import ReceiverConfig
from monitor.config.starter import StarterReceiver
from monitor.i18n import Value, say

NONE = "none"
AUTO = "auto"
# Path of the address of a robot -> kind, for robots behind a proxy and on premises.
_KINDS_BY_PATH = {
    "/cgi-bin/webhook/send": "wecom", "/robot/send": "dingtalk", "/open-apis/bot/": "feishu",
}  # fmt: skip
SIGNED_KINDS = ("dingtalk", "feishu")
_NOTHING = ("", NONE, "no", "n", "无", "否")
_YES, _NO = ("y", "yes", "true", "是", "要"), ("n", "no", "false", "否", "不", "不要")
_LANGUAGES = {"en": "en", "english": "en", "zh": "zh", "chinese": "zh", "中文": "zh"}
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CHINESE_DAYS = ("一", "二", "三", "四", "五", "六", "日")
_ROOT = TypeAdapter(Root)
MAX_ROOTS = 50
MAX_REASON_CHARS = 200


class AnswerError(ValueError):
    """An answer is invalid."""

    def __init__(self, key: str, **values: Value) -> None:
        super().__init__(key)
        self._key, self._values = key, values

    def text(self, lang: str) -> str:
        return say(lang, f"init.invalid.{self._key}", self._values)


def parse_language(text: str) -> str:
    """`en` or `zh`, also written as English or 中文."""
    if (language := _LANGUAGES.get(text.lower())) is None:
        raise AnswerError("language")
    return language


def parse_timezone(text: str) -> str:
    """Name of a time zone."""
    try:
        return zone(text).key
    except ValueError:
        raise AnswerError("timezone", given=shorten(text, MAX_REASON_CHARS)) from None


def parse_receiver(text: str) -> StarterReceiver | None:
    """The kind follows from the host or the path of the address. The message does not contain the address."""
    if text.lower() in _NOTHING:
        return None
    try:
        path = urlsplit(text).path
        kind = next((kind for beginning, kind in _KINDS_BY_PATH.items() if path.startswith(beginning)), None)
        receiver = ReceiverConfig.model_validate({"url": text, "kind": kind})
        kind = receiver.effective_kind
    except (ValidationError, ValueError):
        raise AnswerError("receiver") from None
    if not text.startswith(("https://", "http://")):
        raise AnswerError("receiver")
    return StarterReceiver(kind, text)


def parse_secret(text: str) -> str | None:
    """Signing secret of a robot; None without one."""
    return None if text.lower() in _NOTHING else text


def parse_roots(text: str) -> tuple[str, ...]:
    """Directories, separated by commas or spaces."""
    if text.lower() in _NOTHING:
        return ()
    roots = dict.fromkeys(_parse_root(root) for root in text.replace(",", " ").replace("，", " ").split())  # noqa: RUF001  # as Chinese input methods write it
    if len(roots) > MAX_ROOTS:
        raise AnswerError("roots", most=MAX_ROOTS)
    return tuple(roots)


def _parse_root(text: str) -> str:
    try:
        return _ROOT.validate_python(text)
    except ValidationError:
        raise AnswerError("root", given=shorten(text, MAX_REASON_CHARS)) from None


def parse_node(text: str) -> str:
    """Name of a node."""
    if not text or any(char.isspace() for char in text):
        raise AnswerError("node")
    return text


def parse_yes(text: str) -> bool:
    """Yes or no, in both languages."""
    if text.lower() not in (*_YES, *_NO):
        raise AnswerError("yes")
    return text.lower() in _YES


def parse_day(text: str) -> str | None:
    """A day of the week, such as mon, Monday or 周一; None for no report."""
    if text.lower() in _NOTHING:
        return None
    chinese = text.removeprefix("星期").removeprefix("周").replace("天", "日")
    if chinese in _CHINESE_DAYS:
        return _DAYS[_CHINESE_DAYS.index(chinese)]
    if (day := text.lower()[:3]) not in _DAYS:
        raise AnswerError("day")
    return day


def parse_kubernetes(text: str) -> str:
    """`auto`, `no`, or the absolute path of a kubeconfig with usable credentials."""
    if text.lower() == AUTO:
        return AUTO
    if text.lower() in _NOTHING:
        return "no"
    from monitor.kube.client import KubeCredentialsError, load_client

    path = os.path.abspath(os.path.expanduser(text))
    try:
        load_client(path, None)
    except KubeCredentialsError as error:
        raise AnswerError("kubernetes", reason=shorten(clean(str(error)), MAX_REASON_CHARS)) from None
    return path


def default_kubernetes(environ: Mapping[str, str]) -> str:
    """The kubeconfig of this user if it can be used, else `auto`."""
    path = environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    try:
        return parse_kubernetes(path) if os.path.isfile(path) else AUTO
    except AnswerError:
        return AUTO
