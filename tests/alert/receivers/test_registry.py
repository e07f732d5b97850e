from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from monitor.alert.receivers import registry
from monitor.alert.receivers.base import MailSettings, ReceiverSettings

SHARED = {"__init__", "registry", "base", "bots", "common", "payload"}


def test_every_file_is_a_kind_that_is_listed() -> None:
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")}
    assert files - SHARED == set(registry.KINDS)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_a_receiver_says_what_it_is(kind: str) -> None:
    mail = MailSettings(host="127.0.0.1", port=25, sender="warden@example.com")
    built = registry.build(ReceiverSettings(name="ops", kind=kind, url="https://127.0.0.1/", mail=mail))
    assert (built.name, built.kind) == ("ops", kind)
    assert built.capacity([]) == 1


def test_a_kind_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="unknown kind of receiver 'pigeon'; one of wecom, dingtalk"):
        registry.build(ReceiverSettings(name="ops", kind="pigeon"))


def test_mail_without_its_settings() -> None:
    with pytest.raises(ValueError, match="receiver ops has no mail settings"):
        registry.build(ReceiverSettings(name="ops", kind="mail"))


def test_a_host_identifies_one_kind() -> None:
    hosts = [host for kind in registry.KINDS.values() for host in kind.hosts]
    assert len(hosts) == len(registry.HOSTS)
    assert registry.HOSTS["open.larksuite.com"] == "feishu"


def test_kinds_that_have_an_option() -> None:
    assert registry.kinds_with("secret") == ("dingtalk", "feishu", "webhook")
    assert registry.kinds_with("timeout") == ()


def test_the_table_is_cheap_to_import() -> None:
    """The configuration, which every command and the agent load, needs the table but not the classes."""
    code = (
        "import sys, monitor.alert.receivers.registry\n"
        "print([name for name in ('jinja2', 'monitor.i18n', 'smtplib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
