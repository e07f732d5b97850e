"""Says who asks: by a token, by what a trusted proxy says, by a session, or that nobody knows."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
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
from monitor.access.settings import AccessSettings, AccessToken, TrustedHeader
from monitor.base.net import is_loopback
from monitor.web.authorization import is_here, peer_of

COOKIE = "gpuwarden"
LOCAL_ADMIN = "admin"  # who signs in by a link that was shown on this machine
LONGEST_NAME = 100
STRONG = 20  # characters of a token that nobody guesses: who knows it need not wait for those who try
NOBODY = Principal("", Role.NONE)


class LockedOutError(RequestRejectedError):
    """There were too many guesses. `seconds` says when there may be another."""

    def __init__(self, seconds: float) -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, f"too many tries; wait {seconds:.0f} s", seconds)
        self.seconds = seconds


class Authenticator:
    """Knows everybody. For use from any thread."""

    def __init__(self, settings: AccessSettings, now: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.sessions = Sessions(settings.lifetime, settings.idle)
        self._codes = LoginCodes()
        self._lockout = Lockout()
        self._accounts = {account.name: account for account in settings.accounts}
        self._secret = secrets.token_bytes(32)
        self._now = now

    # Who asks

    def person(self, request: Request) -> Principal:
        """Given a request, return who makes it. Raise RefusedError if it claims something that is not so."""
        bearer = _bearer(request)
        if bearer is not None:
            return self._by_token(bearer, request)
        return self._by_header(request) or self._by_session(request) or self.anonymous(request)

    def anonymous(self, request: Request) -> Principal:
        """Return what somebody may do who does not say who they are."""
        settings = self.settings
        let_in = not settings.local_only or is_here(request)
        return replace(NOBODY, role=settings.anonymous) if let_in else NOBODY

    def by_known_token(self, request: Request) -> Principal | None:
        """Return who a request is from by its token; None if that is not one of ours."""
        bearer = _bearer(request)
        found = self._token(bearer) if bearer is not None else None
        return _holder(found) if found is not None else None

    def _by_token(self, bearer: str, request: Request) -> Principal:
        found, where = self._token(bearer), self.counted_as(request)
        if found is not None and len(found.token) >= STRONG:
            return _holder(found)
        wait = self._lockout.begin(None, where, self._now())
        if wait > 0:
            raise LockedOutError(wait)
        if found is None:
            needed = "the token of daemon.token, or one of daemon.access.tokens,"
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, f"this needs {needed} as a bearer token")
        self._lockout.was_right(None, where)
        return _holder(found)

    def _token(self, bearer: str) -> AccessToken | None:
        """Return the token that was given. All are compared, in a time that tells nothing."""
        given = hashlib.sha256(bearer.encode("utf-8", "surrogateescape")).digest()
        found = None
        for token in self.settings.tokens:
            if hmac.compare_digest(given, hashlib.sha256(token.token.encode()).digest()):
                found = token
        return found

    def _by_header(self, request: Request) -> Principal | None:
        trusted = self.settings.header
        if trusted is None or not _is_in(peer_of(request), trusted):
            return None
        name, word = _said(request, trusted.name), _said(request, trusted.role_header or "")
        if not name:
            return None
        account = self._accounts.get(name)
        role = account.role if account is not None else trusted.role
        if word is not None:
            role = Role(word.lower()) if word.lower() in list(Role) else Role.VIEWER
        csrf = hmac.new(self._secret, name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        user = account.cluster_user if account is not None else name
        return Principal(name, role, user, csrf, AuthMethod.HEADER)

    def _by_session(self, request: Request) -> Principal | None:
        own = request.cookies.get(cookie_name(request))
        return self.sessions.find(own, self._now()) if own else None

    # Signing in

    def sign_in(self, name: str, password: str, request: Request) -> tuple[str, Principal]:
        """Given a name and a password, return the id of a new session, and whose. Raise RefusedError."""
        where = self.counted_as(request)
        name = name[:LONGEST_NAME]
        wait = self._lockout.begin(name, where, self._now())
        if wait > 0:
            raise LockedOutError(wait)
        account = self._accounts.get(name)
        if not verify_password(password, account.password if account is not None else None) or account is None:
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "name or password is wrong")
        self._lockout.was_right(name, where)
        return self.sessions.begin(Principal(account.name, account.role, account.cluster_user), self._now())

    def sign_in_by_code(self, code: str, request: Request) -> tuple[str, Principal]:
        """Given the code of a link, or a token, do the same."""
        where = self.counted_as(request)
        wait = self._lockout.begin(None, where, self._now())
        if wait > 0:
            raise LockedOutError(wait)
        token = self._token(code)
        if token is None and not self._codes.use(code, self._now()):
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "this link was used before, or is too old")
        self._lockout.was_right(None, where)
        person = _holder(token) if token is not None else Principal(LOCAL_ADMIN, Role.ADMIN)
        return self.sessions.begin(person, self._now())

    def link(self) -> str:
        """Return the path by which somebody may sign in as admin, once. A browser does not send what is behind #."""
        return f"/login#code={self._codes.make(self._now())}"

    def counted_as(self, request: Request) -> str:
        """Return where a guess comes from: behind a proxy of ours, from whom that says it has it."""
        peer, header = peer_of(request), self.settings.header
        ours = is_loopback(peer) or (header is not None and _is_in(peer, header))
        passed = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip() if ours else ""
        return passed[:64] or peer


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie: browsers do not tell the ports of a machine apart."""
    server = request.scope.get("server")
    return f"{COOKIE}-{server[1]}" if server else COOKIE


def behind_tls(request: Request) -> bool:
    """Return whether the browser speaks TLS, with us or with a proxy. Who lies here cheats only themselves."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"


def _holder(token: AccessToken) -> Principal:
    return Principal(token.name, token.role, how=AuthMethod.TOKEN)


def _bearer(request: Request) -> str | None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def _is_in(peer: str, trusted: TrustedHeader) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((mapped or address) in network for network in trusted.networks)


def _said(request: Request, header: str) -> str | None:
    """Return what a proxy says in a header. Raise RefusedError if there are two: one of them is not the proxy's."""
    values = request.headers.getlist(header) if header else []
    if len(values) > 1:
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, f"{header} is given twice")
    if not values:
        return None
    try:
        said = values[0].strip().encode("latin-1").decode()
    except UnicodeError:
        said = values[0].strip()
    if len(said) > LONGEST_NAME or not said.isprintable():
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, f"{header} holds no name")
    return said
