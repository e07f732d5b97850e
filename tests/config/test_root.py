from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pydantic import ValidationError

from monitor.agent.settings import AgentSettings
from monitor.config.agent import parse_url
from monitor.config.root import Config
from monitor.config.types import Listen, parse_listen

SECRET = "s3cret-t0ken"


def test_the_defaults_are_a_configuration() -> None:
    settings = Config().agent_settings()
    assert (settings.listen_host, settings.listen_port) == ("127.0.0.1", 9835)
    assert settings.token is None
    assert settings.node_name
    assert all(schedule.enabled for schedule in settings.collectors.values())


def test_settings_survive_the_way_to_the_agent() -> None:
    given = {"agent": {"mounts": ["/mnt/a"], "registries": ["harbor.lab:8443"], "token": SECRET}}
    settings = Config.model_validate(given).agent_settings()
    assert msgspec.json.decode(msgspec.json.encode(settings), type=AgentSettings) == settings
    assert settings.mounts[0].path == "/mnt/a"
    assert settings.registries[0].url == "https://harbor.lab:8443"
    assert settings.token == SECRET


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("127.0.0.1:9835", "127.0.0.1", 9835),
        ("[::1]:9835", "::1", 9835),
        (":9835", "0.0.0.0", 9835),
        ("localhost:0", "localhost", 0),
        ({"host": "::", "port": 1}, "::", 1),
    ],
)
def test_addresses(written: object, host: str, port: int) -> None:
    assert Listen.model_validate(parse_listen(written)) == Listen(host=host, port=port)


@pytest.mark.parametrize("written", ["127.0.0.1", "9835", "a:b", "a:65536", "::1:9835", "a:-1", 9835, True, ["a:1"]])
def test_what_is_not_an_address(written: object) -> None:
    with pytest.raises(ValueError, match="is not an address; write host:port"):
        parse_listen(written)


def test_an_address_is_shown_as_it_is_written() -> None:
    assert [str(Listen(host=host, port=1)) for host in ("127.0.0.1", "::1")] == ["127.0.0.1:1", "[::1]:1"]


def test_one_changed_part_of_a_schedule_leaves_the_other_parts_at_their_defaults() -> None:
    changed = Config.model_validate({"agent": {"collectors": {"gpu": {"interval": "1s"}, "shm": {"enabled": False}}}})
    default = Config().agent.collectors
    assert changed.agent.collectors.gpu == default.gpu.model_copy(update={"interval": 1.0})
    assert changed.agent.collectors.shm == default.shm.model_copy(update={"enabled": False})
    assert changed.agent.collectors.disk == default.disk


@pytest.mark.parametrize(
    "given",
    [
        {"agent": None, "daemon": None},
        {"agent": {"collectors": None, "mounts": None, "listen": None, "token": None}},
        {"agent": {"collectors": {"gpu": None, "shm": {"interval": None, "limit": None}}}},
    ],
)
def test_a_key_with_nothing_below_it_means_the_default(given: dict[str, object]) -> None:
    assert Config.model_validate(given) == Config()


@pytest.mark.parametrize(
    "url", ["https://harbor.lab", "https://harbor.lab/", "http://10.0.0.1:5000", "https://[::1]:443"]
)
def test_registry_addresses(url: str) -> None:
    assert parse_url(url) == url


@pytest.mark.parametrize(
    "url", ["harbor.lab", "ftp://harbor.lab", "https://", "https:///", "https://a/b", "https://a b", "https://a?b"]
)
def test_what_is_not_a_registry_address(url: str) -> None:
    with pytest.raises(ValueError, match="is not a registry's address"):
        parse_url(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="no user name or password") as refused:
        parse_url(f"https://admin:{SECRET}@harbor.lab")
    assert SECRET not in str(refused.value)


def test_a_token_from_a_file_is_stripped(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    config = Config.model_validate({"agent": {"token_file": str(file)}})
    assert config.agent.read_token() == SECRET


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the token is empty"),
        (b" \n", "the token is empty"),
        (b"one\ntwo\n", "no line breaks"),
        (b"\xff\xfes3cret", "holds no text"),
        ("s3cret-é".encode(), "ASCII"),
    ],
)
def test_files_that_hold_no_token(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(ValidationError) as refused:
        Config.model_validate({"agent": {"token_file": str(file)}})
    assert message in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_secret_is_in_no_representation_of_the_configuration() -> None:
    config = Config.model_validate({"agent": {"token": SECRET}})
    for shown in (repr(config), str(config), repr(config.agent), config.model_dump_json(), str(config.model_dump())):
        assert SECRET not in shown


def test_a_secret_is_in_no_validation_error() -> None:
    with pytest.raises(ValidationError) as refused:
        Config.model_validate({"agent": {"token": SECRET, "listen": 5, "unknown": SECRET}})
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)


def test_the_configuration_does_not_change_after_loading() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().log_level = "debug"
