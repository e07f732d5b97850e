"""Users that a receiver reaches alone: a wrong answer here lets others release what is not theirs."""

from __future__ import annotations

import pytest

from monitor.alert.receivers.base import MailSettings, OwnerContact, ReceiverSettings, users_reached_alone

OWNERS = {
    "zhang": OwnerContact(mail="zhang@example.com", wecom="zhang"),
    "li": OwnerContact(mail="team@example.com"),
    "wang": OwnerContact(mail="Team@Example.com"),
    "zhao": OwnerContact(mobile="13800000000"),
}


@pytest.mark.parametrize(
    ("kind", "to", "to_owners", "alone"),
    [
        ("mail", (), True, {"zhang"}),  # two share an address, one has none
        ("mail", ("ops@example.com",), True, set()),
        ("mail", ("zhang@example.com",), False, set()),
        ("wecom", (), True, set()),
    ],
)
def test_only_mail_to_owners_alone_is_private(kind: str, to: tuple[str, ...], to_owners: bool, alone: set[str]) -> None:
    mail = MailSettings("mail.example.com", 25, "gpuwarden@example.com", to, to_owners) if kind == "mail" else None
    settings = ReceiverSettings("r", kind, owners=OWNERS, mail=mail)
    assert users_reached_alone(settings) == alone
