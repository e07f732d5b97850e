"""Error texts that many programs print: those of the operating system, of resolvers, and HTTP statuses.

A common phrase says the cause only where an error ends: `touch: cannot touch '/x': Read-only file system`.
"""

from __future__ import annotations

import re

from monitor.facts.log_tails import LogCause as Cause

_ENDINGS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    (Cause.READ_ONLY, ("read-only file system", "attempt to write a readonly database", "只读文件系统")),
    (Cause.DISK_FULL, ("no space left on device", "设备上没有空间")),
    (Cause.STORAGE_IO, (
        "input/output error", "remote i/o error", "disk i/o error", "structure needs cleaning", "输入/输出错误",
    )),
    (Cause.DNS, (
        "name or service not known", "temporary failure in name resolution", "could not resolve host", "no such host",
        "no address associated with hostname", "nodename nor servname provided, or not known", "name does not resolve",
        "getaddrinfo failed", "unknown host", "未知的名称或服务", "failed to resolve", "域名解析暂时失败",
    )),
    (Cause.REFUSED, ("connection refused", "拒绝连接")),
    (Cause.TIMEOUT, (
        "connection timed out", "no route to host", "network is unreachable", "connect timeout", "read timed out",
        "operation timed out", "连接超时", "没有到主机的路由", "could not connect to the endpoint url",
    )),
    (Cause.OUT_OF_MEMORY, ("cannot allocate memory", "无法分配内存")),
    (Cause.PERMISSION, ("permission denied", "operation not permitted", "权限不够")),
    (Cause.MISSING_FILE, (
        "no such file or directory", "没有那个文件或目录", "command not found", "executable file not found in $path",
    )),
)  # fmt: skip
_ERRNOS = {
    1: Cause.PERMISSION, 2: Cause.MISSING_FILE, 5: Cause.STORAGE_IO, 12: Cause.OUT_OF_MEMORY, 13: Cause.PERMISSION,
    24: Cause.OPEN_FILES, 28: Cause.DISK_FULL, 30: Cause.READ_ONLY, 101: Cause.TIMEOUT, 107: Cause.MOUNT_DEAD,
    108: Cause.MOUNT_DEAD, 110: Cause.TIMEOUT, 111: Cause.REFUSED, 112: Cause.MOUNT_DEAD, 113: Cause.TIMEOUT,
    116: Cause.MOUNT_DEAD, 117: Cause.STORAGE_IO, 121: Cause.STORAGE_IO, 122: Cause.DISK_QUOTA,
    -2: Cause.DNS, -3: Cause.DNS, -5: Cause.DNS,
}  # fmt: skip
_ERRNO = re.compile(r"\[?\b(?:errno(?::| =)?|os error) (-?\d{1,3})\b", re.IGNORECASE)
# After the phrase: the path or the number, and punctuation.
_REST = re.compile(
    r"[\s.!;,)\]}\"'>(]{0,8}(?:$|[:(\[] ?['\"(]?(?:os error|errno|/|\d|[\w.-]{1,80}['\")]{0,3}$)|(?:: |->).{0,300}$)"
)
_STATUS = re.compile(
    r"\b(?:(?P<requests>[1-5]\d\d) (?:client|server) error\b|(?:http error|http status|status code|status|error code"
    r"|returned error|status_code|http code|http(?:/[\d.]{1,3})?|responded with|error)[ :=]{1,3}\(?"
    r"(?P<named>[45]\d\d)\b(?! ?%|\.\d)"
    r"|an error occurred \((?P<boto>\w{3,40})\) when calling|(?P<aiohttp>[45]\d\d), message="
    r"|too many (?P<urllib3>[45]\d\d) error responses)",
    re.IGNORECASE,
)
_STORE_CODES = {
    "accessdenied": Cause.HTTP_DENIED, "invalidaccesskeyid": Cause.HTTP_DENIED, "expiredtoken": Cause.HTTP_DENIED,
    "signaturedoesnotmatch": Cause.HTTP_DENIED, "forbidden": Cause.HTTP_DENIED, "unauthorized": Cause.HTTP_DENIED,
    "invalidtoken": Cause.HTTP_DENIED, "allaccessdisabled": Cause.HTTP_DENIED, "nosuchkey": Cause.HTTP_MISSING,
    "nosuchbucket": Cause.HTTP_MISSING, "nosuchupload": Cause.HTTP_MISSING, "notfound": Cause.HTTP_MISSING,
    "slowdown": Cause.RATE_LIMITED, "throttling": Cause.RATE_LIMITED, "requestlimitexceeded": Cause.RATE_LIMITED,
    "throttlingexception": Cause.RATE_LIMITED, "toomanyrequests": Cause.RATE_LIMITED,
    "internalerror": Cause.HTTP_ERROR, "serviceunavailable": Cause.HTTP_ERROR,
    "xminioservernotinitialized": Cause.HTTP_ERROR,
}  # fmt: skip
_HTTP_WORDING: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    (Cause.RATE_LIMITED, ("too many requests", "rate limit", "reduce your request rate")),
    (Cause.HTTP_DENIED, (
        "unable to locate credentials", "invalid credentials", "authentication failed", "authentication required",
        "api key verification failed", "api key not configured", "api_key not configured", "token is required",
        "could not automatically determine credentials",
        "default credentials were not found", "access denied", "gated repo",
        "invalid username or password", "unauthorized for url", "forbidden for url", "could not read username",
        "invalid user token", "anonymous caller does not have", "access to model",
    )),
    (Cause.HTTP_MISSING, (
        "the specified key does not exist", "the specified bucket does not exist", "is not a valid model identifier",
        "doesn't exist on the hub", "not found for url", "does not appear to have a file named",
    )),
    (Cause.HTTP_ERROR, ("bad gateway", "service unavailable", "service temporarily unavailable", "gateway time-out")),
)  # fmt: skip


def match_ending(lower: str) -> Cause | None:
    """Cause by a common error text at the end of a lower-case line."""
    for cause, phrases in _ENDINGS:
        for phrase in phrases:
            position = lower.rfind(phrase)
            if position >= 0 and _REST.match(lower, position + len(phrase)):
                return cause
    return None


def match_phrase(lower: str) -> Cause | None:
    """Cause by a common error text anywhere in the message of an exception of the operating system or the network."""
    return next((cause for cause, phrases in _ENDINGS if any(phrase in lower for phrase in phrases)), None)


def match_errno(text: str) -> Cause | None:
    """Cause by the last error number in the message of an exception: the innermost error comes last."""
    found = None
    for match in _ERRNO.finditer(text):
        found = _ERRNOS.get(int(match[1]), found)
    return found


def match_http(text: str) -> Cause | None:
    """Cause by the HTTP status or the code of an object store in a message."""
    if match := _STATUS.search(text):
        code = match["boto"]
        if code is not None and not code.isdecimal():
            return _STORE_CODES.get(code.lower(), Cause.HTTP)
        return _by_status(
            int(match["requests"] or match["named"] or match["aiohttp"] or match["urllib3"] or code), text.lower()
        )
    lower = text.lower()
    return next((cause for cause, phrases in _HTTP_WORDING if any(phrase in lower for phrase in phrases)), None)


def _by_status(status: int, lower: str) -> Cause:
    if status in (401, 403):
        # Hubs answer 401 for a repository that does not exist or is hidden from this user.
        return Cause.HTTP if "repository not found" in lower else Cause.HTTP_DENIED
    if status == 404:
        return Cause.HTTP_MISSING
    if status == 429:
        return Cause.RATE_LIMITED
    return Cause.HTTP_ERROR if status >= 500 else Cause.HTTP
