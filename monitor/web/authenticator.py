"""Authentication by bearer token, trusted proxy header or session, and login."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from starlette.requests import Request

from monitor.access.errors import RequestRejectedError
from monitor.access.lockout import Lockout
from monitor.access.passwords import verify_password
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.access.sessions import LoginCodes, Sessions
from monitor.access.settings import AccessSettings, AccessToken
from monitor.base.net import in_networks, is_loopback
from monitor.web.authorization import bearer_token, is_local, peer_of

COOKIE = "gpuwarden"
LOCAL_ADMIN = "admin"  # signed in with a link printed on this machine
LOCAL_PROCESS = "local"  # authenticated with the token file in the state directory
MAX_NAME_CHARS = 100
STRONG_TOKEN_CHARS = 20  # cannot be guessed, so lockout does not apply
ANONYMOUS = Principal("", Role.NONE)


class LockedOutError(RequestRejectedError):
    """Too many attempts. `seconds` is the delay before the next one."""

    def __init__(self, seconds: float) -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, f"too many attempts; wait {seconds:.0f} s", seconds)
        self.seconds = seconds


class Authenticator:
    """Determines the principal of a request, and signs users in. Thread-safe.

    `local_token` authenticates the commands of the daemon's user, in addition to the configured tokens.
    """

    def __init__(
        self, settings: AccessSettings, now: Callable[[], float] = time.time, local_token: str | None = None
    ) -> None:
        self.settings = settings
        self.sessions = Sessions(settings.lifetime, settings.idle)
        self._codes = LoginCodes()
        self._lockout = Lockout()
        self._tokens = settings.tokens
        if local_token is not None:
            self._tokens += (AccessToken(LOCAL_PROCESS, Role.ADMIN, local_token, AuthMethod.MACHINE),)
        self._accounts = {account.name: account for account in settings.accounts}
        self._secret = secrets.token_bytes(32)
        self._now = now

    # Requests

    def authenticate(self, request: Request) -> Principal:
        """The principal of a request. Raise RequestRejectedError if its credentials are wrong."""
        bearer = bearer_token(request)
        if bearer is not None:
            return self._by_token(bearer, request)
        return self._by_header(request) or self._by_session(request) or self.anonymous(request)

    def anonymous(self, request: Request) -> Principal:
        """The principal of a request without credentials."""
        settings = self.settings
        allowed = not settings.local_only or is_local(request)
        return replace(ANONYMOUS, role=settings.anonymous) if allowed else ANONYMOUS

    def by_known_token(self, request: Request) -> Principal | None:
        """The principal of a bearer token; None if it is missing or unknown."""
        bearer = bearer_token(request)
        token = self._find_token(bearer) if bearer is not None else None
        return _token_principal(token) if token is not None else None

    def _by_token(self, bearer: str, request: Request) -> Principal:
        token, peer = self._find_token(bearer), self.lockout_peer(request)
        if token is not None and len(token.token) >= STRONG_TOKEN_CHARS:
            return _token_principal(token)
        self._begin_attempt(None, peer)
        if token is None:
            needed = "the token of daemon.token, or one of daemon.access.tokens,"
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, f"this needs {needed} as a bearer token")
        self._lockout.succeeded(None, peer)
        return _token_principal(token)

    def _find_token(self, bearer: str) -> AccessToken | None:
        """The token with this value; always compares with all of them, in constant time."""
        given = hashlib.sha256(bearer.encode("utf-8", "surrogateescape")).digest()
        match = None
        for token in self._tokens:
            if hmac.compare_digest(given, hashlib.sha256(token.token.encode()).digest()):
                match = token
        return match

    def _by_header(self, request: Request) -> Principal | None:
        trusted = self.settings.header
        if trusted is None or not in_networks(peer_of(request), trusted.networks):
            return None
        name, role_name = _header(request, trusted.name), _header(request, trusted.role_header or "")
        if not name:
            return None
        account = self._accounts.get(name)
        role = account.role if account is not None else trusted.role
        if role_name is not None:
            role = Role(role_name.lower()) if role_name.lower() in list(Role) else Role.VIEWER
        csrf = hmac.new(self._secret, name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        user = account.cluster_user if account is not None else name
        return Principal(name, role, user, csrf, AuthMethod.HEADER)

    def _by_session(self, request: Request) -> Principal | None:
        session_id = request.cookies.get(cookie_name(request))
        return self.sessions.find(session_id, self._now()) if session_id else None

    # Login

    def sign_in(self, name: str, password: str, request: Request) -> tuple[str, Principal]:
        """Sign in with a password; return the id of the new session and its principal. Raise RequestRejectedError."""
        peer = self.lockout_peer(request)
        name = name[:MAX_NAME_CHARS]
        self._begin_attempt(name, peer)
        account = self._accounts.get(name)
        if not verify_password(password, account.password if account is not None else None) or account is None:
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "wrong name or password")
        self._lockout.succeeded(name, peer)
        return self.sessions.begin(Principal(account.name, account.role, account.cluster_user), self._now())

    def sign_in_by_code(self, code: str, request: Request) -> tuple[str, Principal]:
        """Sign in with the code of a login link, or with a token. Raise RequestRejectedError."""
        # A code cannot be guessed, so lockout does not apply: other users of this machine could cause it.
        by_link = self._codes.use(code, self._now())
        principal = Principal(LOCAL_ADMIN, Role.ADMIN) if by_link else self._by_token(code, request)
        return self.sessions.begin(principal, self._now())

    def link(self) -> str:
        """Path of a one-time login as admin. Browsers do not send the part after # to the server."""
        return f"/login#code={self._codes.make(self._now())}"

    def lockout_peer(self, request: Request) -> str:
        """The address that attempts are counted under: the client's, as reported by a local or trusted proxy."""
        peer = peer_of(request)
        trusted = is_loopback(peer) or in_networks(peer, self.settings.proxies)
        forwarded = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip() if trusted else ""
        return forwarded[:64] or peer

    def _begin_attempt(self, name: str | None, peer: str) -> None:
        delay = self._lockout.begin(name, peer, self._now())
        if delay > 0:
            raise LockedOutError(delay)


def cookie_name(request: Request) -> str:
    """Name of the session cookie. It includes the port, because browsers share cookies between ports."""
    server = request.scope.get("server")
    return f"{COOKIE}-{server[1]}" if server else COOKIE


def behind_tls(request: Request) -> bool:
    """Whether the browser uses TLS. The header is not verified: forging it affects only the client's own cookie."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"


def _token_principal(token: AccessToken) -> Principal:
    return Principal(token.name, token.role, method=token.method)


def _header(request: Request, name: str) -> str | None:
    """Value of a proxy's header. Raise RequestRejectedError if it is repeated: one of them is forged."""
    values = request.headers.getlist(name) if name else []
    if len(values) > 1:
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, f"header {name} is given twice")
    if not values:
        return None
    try:
        value = values[0].strip().encode("latin-1").decode()
    except UnicodeError:
        value = values[0].strip()
    if len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, f"header {name} is not a valid name")
    return value
