"""What settings are made of: durations, addresses, paths, secrets. Every section of the configuration builds on these.

Whatever can be wrong with a value is said by a ValueError in plain words: the messages reach the person who wrote it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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

from monitor.base.units import parse_duration, parse_ratio, parse_size, quoted

SHORTEST = 0.1  # seconds; anything that repeats or waits for less would do nothing else


def at_least_the_shortest(seconds: float) -> float:
    """Given seconds, return them. Raise ValueError if a thing could not be done so often or so quickly."""
    if seconds < SHORTEST:
        raise ValueError(f"{seconds:g}s is too short; the least is 100ms")
    return seconds


def parse_path(value: str) -> str:
    """Given an absolute path, return it. Raise ValueError if it depends on where the program was started."""
    if not value.startswith("/"):
        raise ValueError(f"{quoted(value)} is not an absolute path; it has to begin with /")
    return value


Duration = Annotated[float, BeforeValidator(parse_duration)]
Span = Annotated[Duration, AfterValidator(at_least_the_shortest)]
Size = Annotated[int, BeforeValidator(parse_size)]
Ratio = Annotated[float, BeforeValidator(parse_ratio)]
AbsolutePath = Annotated[str, AfterValidator(parse_path)]
LogLevel = Literal["debug", "info", "warning", "error"]


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_written_is_the_default(cls, value: object) -> object:
        """`agent:` and `mounts:` with every line below them commented out mean the defaults, not null."""
        if value is None:
            return {}
        if isinstance(value, dict):
            return {key: given for key, given in value.items() if given is not None or key not in cls.model_fields}
        return value


class Listen(Section):
    """An address to serve on, written `127.0.0.1:9835` or `[::1]:9835`."""

    host: Annotated[str, Field(min_length=1)]
    port: int = Field(ge=0, le=65535)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(value: object) -> object:
    """Given `host:port`, return its parts. Raise ValueError that says what to write."""
    if isinstance(value, (dict, Listen)):
        return value
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port[:6]) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"{quoted(value)} is not an address; write host:port, for example 127.0.0.1:9835")
    return {"host": host.strip("[]") or "0.0.0.0", "port": int(port)}  # noqa: S104  # ":9835" asks for exactly that


Address = Annotated[Listen, BeforeValidator(parse_listen)]


def parse_token(token: str) -> str:
    """Given a token, return it. Raise ValueError, without the token in it, if no HTTP header could carry it."""
    if not token:
        raise ValueError("the token is empty")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ValueError("a token has only letters, digits and ASCII signs, no spaces and no line breaks")
    return token


def read_token_file(path: str) -> str:
    """Given a path, return the token in that file. Raise ValueError, without the token in it, if there is none."""
    try:
        return parse_token(Path(path).read_text(encoding="utf-8").strip())
    except OSError as error:
        raise ValueError(f"cannot read {quoted(path)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(path)} holds no text") from None  # the decoder's message quotes the bytes


def _check_token(token: SecretStr) -> SecretStr:
    parse_token(token.get_secret_value())
    return token


class SecretSection(Section):
    """A section with `token`, given inline or by file, never both."""

    token: Annotated[SecretStr, AfterValidator(_check_token)] | None = None
    token_file: str | None = None

    @field_validator("token_file")
    @classmethod
    def _one_source_that_can_be_read(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is not None and info.data.get("token") is not None:
            raise ValueError("give token or token_file, not both")
        if path is not None:
            read_token_file(path)
        return path

    def read_token(self) -> str | None:
        """Return the token, read from its file if that is where it is. Raise ValueError if the file is gone."""
        if self.token_file is not None:
            return read_token_file(self.token_file)
        return self.token.get_secret_value() if self.token is not None else None


def read_password(password: SecretStr | None, file: str | None) -> str | None:
    """Return the password, read from its file if that is where it is. Raise ValueError if it cannot be read."""
    if file is None:
        return password.get_secret_value() if password is not None else None
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ValueError(f"cannot read {quoted(file)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(file)} holds no text") from None
