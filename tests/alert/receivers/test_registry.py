from __future__ import annotations

from pathlib import Path

import pytest

from monitor.alert.receivers import registry as receivers
from monitor.alert.receivers.base import MailSettings, ReceiverSettings

SHARED = {"__init__", "registry", "base", "bots", "configured", "payload"}


def test_every_file_is_a_kind_that_is_listed() -> None:
    files = {path.stem for path in Path(receivers.__file__).parent.glob("*.py")}
    assert files - SHARED == set(receivers.KINDS)


@pytest.mark.parametrize("kind", receivers.KINDS)
def test_a_receiver_says_what_it_is(kind: str) -> None:
    mail = MailSettings(host="127.0.0.1", port=25, sender="warden@example.com")
    built = receivers.build(ReceiverSettings(name="ops", kind=kind, url="https://127.0.0.1/", mail=mail))
    assert (built.name, built.kind) == ("ops", kind)
    assert built.capacity([]) == 1


def test_a_kind_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="unknown kind of receiver 'pigeon'; one of wecom, dingtalk"):
        receivers.build(ReceiverSettings(name="ops", kind="pigeon"))


def test_mail_without_its_settings() -> None:
    with pytest.raises(ValueError, match="receiver ops has no mail settings"):
        receivers.build(ReceiverSettings(name="ops", kind="mail"))
