"""Types of settings, such as durations, addresses, paths and secrets, and the base classes of all sections.

Validators raise a ValueError that tells the user what to change; the text never contains a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from monitor.base.cron import cron_trigger
from monitor.base.units import parse_duration, parse_ratio, parse_size, quoted

MIN_SPAN_SECONDS = 0.1  # a shorter interval or timeout keeps a core busy


def _check_span(seconds: float) -> float:
    if seconds < MIN_SPAN_SECONDS:
        raise ValueError(f"{seconds:g}s is too short; the least is 100ms")
    return seconds


def parse_path(value: str) -> str:
    """Require an absolute path."""
    if not value.startswith("/"):
        raise ValueError(f"{quoted(value)} is not an absolute path; it has to begin with /")
    return value


def require(test: Callable[[Any], object], message: str) -> AfterValidator:
    """Validator that raises ValueError with `message`, formatted with the quoted value, unless `test` accepts it."""

    def check(value: Any) -> Any:
        if not test(value):
            raise ValueError(message.format(quoted(value)))
        return value

    return AfterValidator(check)


def check_with(parse: Callable[[Any], object]) -> AfterValidator:
    """Validator that keeps the value unless `parse` raises ValueError."""

    def check(value: Any) -> Any:
        parse(value)
        return value

    return AfterValidator(check)


def parse_list(value: object) -> object:
    """`all` is short for `[all]`."""
    return (value,) if isinstance(value, str) else value


def short_for(key: str) -> BeforeValidator:
    """Validator that reads text as a section: with key `url`, `https://portal.lab` is `{url: https://portal.lab}`."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


def split_url(url: str, advice: str) -> SplitResult:
    """Parts of a URL. The ValueError contains `advice` instead of the URL, which may contain a secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError(f"the address cannot be read; {advice}") from None
    return parts


Duration = Annotated[float, BeforeValidator(parse_duration)]
Span = Annotated[Duration, AfterValidator(_check_span)]
Size = Annotated[int, BeforeValidator(parse_size)]
Ratio = Annotated[float, BeforeValidator(parse_ratio)]
AbsolutePath = Annotated[str, AfterValidator(parse_path)]
Cron = Annotated[str, check_with(lambda cron: cron_trigger(cron, "UTC"))]
Names = Annotated[tuple[str, ...], BeforeValidator(parse_list)]
NonEmpty = Annotated[str, Field(min_length=1)]
LogLevel = Literal["debug", "info", "warning", "error"]


def unique_names(message: str, attribute: str = "name") -> AfterValidator:
    """Validator of a list whose items have different names; `message` formats the first repeated name."""

    def check(items: tuple[Any, ...]) -> None:
        names = [getattr(item, attribute) for item in items]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(message.format(quoted(name)))

    return check_with(check)


def read_text_file(path: str, *, allow_empty: bool = False) -> str:
    """Text of a file without the last line break."""
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ValueError(f"cannot read {quoted(path)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(path)} holds no text") from None  # the decoder's message quotes the bytes
    if not text and not allow_empty:
        raise ValueError(f"{quoted(path)} is empty")
    return text


class Section(BaseModel):
    """A section of the configuration: unknown keys are rejected, and values are immutable after loading.

    `removed_settings` maps keys of older versions to what to do instead.
    """

    removed_settings: ClassVar[Mapping[str, str]] = {}
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_the_default(cls, value: object) -> object:
        """`agent:` and `mounts:` with every line below them commented out mean the defaults, not null."""
        if value is None:
            return {}
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Raise ValueError if values contradict each other."""

    def check_applicable(self, noun: str, kind: str, only: Mapping[str, tuple[str, ...]]) -> None:
        """Reject settings that apply `only` to other kinds of receiver or service."""
        for name in sorted(self.model_fields_set & only.keys()):
            if kind not in only[name]:
                raise ValueError(f"{name} says nothing about a {noun} of kind {kind}")

    def read_secret(self, name: str, *, allow_empty: bool = False) -> str | None:
        """Secret of this name, inline or from its file. Raise ValueError if both are given, or it is unreadable."""
        inline, file = getattr(self, name), getattr(self, f"{name}_file")
        if inline is not None and file is not None:
            raise ValueError(f"give {name} or {name}_file, not both")
        if file is not None:
            text = read_text_file(file, allow_empty=allow_empty)
            return text.strip() if name == "url" else text
        return inline.get_secret_value() if inline is not None else None


class Listen(Section):
    """An address to serve on, written `127.0.0.1:9835` or `[::1]:9835`."""

    host: NonEmpty
    port: int = Field(ge=0, le=65535)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(value: object) -> object:
    """Split `host:port`."""
    if isinstance(value, (dict, Listen)):
        return value
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port[:6]) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"{quoted(value)} is not an address; write host:port, for example 127.0.0.1:9835")
    return {"host": host.strip("[]") or "0.0.0.0", "port": int(port)}  # noqa: S104  # ":9835" asks for exactly that


Address = Annotated[Listen, BeforeValidator(parse_listen)]


def _check_token(token: str) -> str:
    if not token:
        raise ValueError("the token is empty")
    if not (token.isascii() and token.isprintable()) or " " in token:  # an HTTP header could not carry it
        raise ValueError("a token has only letters, digits and ASCII signs, no spaces and no line breaks")
    return token


def _read_token_file(path: str) -> str:
    return _check_token(read_text_file(path, allow_empty=True).strip())


class SecretSection(Section):
    """A section with `token`, given inline or by file, never both."""

    token: Annotated[SecretStr, check_with(lambda token: _check_token(token.get_secret_value()))] | None = None
    token_file: str | None = None

    @field_validator("token_file")
    @classmethod
    def _one_readable_source(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is not None and info.data.get("token") is not None:
            raise ValueError("give token or token_file, not both")
        if path is not None:
            _read_token_file(path)
        return path

    def read_token(self) -> str | None:
        """Token, inline or from its file. Raise ValueError if the file is unreadable."""
        if self.token_file is not None:
            return _read_token_file(self.token_file)
        return self.token.get_secret_value() if self.token is not None else None
