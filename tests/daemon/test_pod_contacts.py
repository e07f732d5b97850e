"""Contacts of users in labels and annotations of their pods, which tenants write."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.receivers.base import OwnerContact
from monitor.config.root import Config
from monitor.daemon.alerting import AlertingInputs, AlertingService
from monitor.daemon.pod_contacts import REFRESH_SECONDS, OwnerDirectory, contact_of, newest_contact
from monitor.facts.cluster import Identity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text
from monitor.job_results.model import JobEnding, JobOutcome, Why
from monitor.job_results.notices import result_notifications
from tests.support import wait_until
from tests.support.receivers.bots import WeComBot
from tests.support.receivers.http_server import LocalServer

NOW = 1_763_260_000.0
KEYS = OwnerContact(wecom="lab/wecom", mail="lab/mail")


def pod(name: str = "bert", created_at: float = 1.0, **fields: Any) -> PodFact:
    return PodFact(uid=f"uid-{name}", name=name, namespace="team-a", created_at=created_at, **fields)


@pytest.mark.parametrize(
    ("labels", "annotations", "contact"),
    [
        ({}, {}, None),
        ({"lab/wecom": "ZhangSan"}, {}, OwnerContact(wecom="ZhangSan")),
        ({}, {"lab/mail": "zhang@lab.example"}, OwnerContact(mail="zhang@lab.example")),
        ({"lab/wecom": "Z"}, {"lab/mail": "z@lab", "lab/wecom": "other"}, OwnerContact(wecom="Z", mail="z@lab")),
        ({"lab/wecom": "@all"}, {"lab/mail": "a@lab, b@lab"}, None),
        ({"lab/wecom": "ALL"}, {"lab/mail": "a@lab\nBcc: b@lab"}, None),
        ({"lab/wecom": "<script>"}, {"lab/mail": "zhang"}, None),
        ({"lab/wecom": "x" * 129}, {}, None),
    ],
)
def test_a_pod_names_a_contact(
    labels: dict[str, str], annotations: dict[str, str], contact: OwnerContact | None
) -> None:
    assert contact_of(pod(labels=labels, annotations=annotations), KEYS) == contact


def test_the_newest_pod_of_the_user_counts() -> None:
    pods = [
        pod("old", 1.0, labels={"lab/wecom": "Old"}), pod("new", 2.0, labels={"lab/wecom": "New"}),
        pod("silent", 3.0), pod("other", 4.0, labels={"lab/wecom": "Other"}),
    ]  # fmt: skip
    users = {"uid-old": "zhang", "uid-new": "zhang", "uid-silent": "zhang", "uid-other": "li"}
    identities = {uid: Identity(user=user) for uid, user in users.items()}
    assert newest_contact("zhang", pods, identities, KEYS) == OwnerContact(wecom="New")
    assert newest_contact("wang", pods, identities, KEYS) is None


def test_a_contact_is_looked_up_once_a_minute_and_kept_after_the_last_pod() -> None:
    now, asked = [0.0], list[str]()
    contacts = {"li": OwnerContact(wecom="Li")}

    def find(user: str) -> OwnerContact | None:
        asked.append(user)
        return contacts.get(user)

    directory = OwnerDirectory({"zhang": OwnerContact(wecom="Z")}, find, lambda: now[0])
    assert directory["zhang"].wecom == "Z"
    assert directory.get("li") == OwnerContact(wecom="Li")
    assert "wang" not in directory
    assert asked == ["li", "wang"]
    contacts.clear()
    now[0] = REFRESH_SECONDS
    assert directory["li"] == OwnerContact(wecom="Li")
    assert asked == ["li", "wang", "li"]
    assert (list(directory), len(directory)) == (["zhang"], 1)


def test_a_message_mentions_who_only_a_pod_says_how_to_reach_and_whose_webhook_gets_it_alone(tmp_path: Path) -> None:
    with WeComBot() as bot, LocalServer() as personal:
        settings = {
            "receivers": [{"name": "chat", "kind": "wecom", "url": bot.url}],
            "owners": {"wang": {"webhook": f"{personal.base}/wang"}},
        }
        config = Config.model_validate({"daemon": {"alerts": settings}}).daemon.alerts
        contacts = {"li": OwnerContact(wecom="LiSi")}
        made = AlertingService(config, str(tmp_path), "http://page", AlertingInputs, find_contact=contacts.get)
        made.start()
        try:
            for user in ("li", "wang"):
                given = JobEnding(
                    id=user, key=user, outcome=JobOutcome.FINISHED, namespace="n", job="bert", user=user, pod="bert-0",
                    ended_at=NOW, why=Why(cause="done", headline=Text("job-finished.done")),
                )  # fmt: skip
                made.dispatcher.send(result_notifications(given, None, ("chat",), time.time()), {})
            wait_until(lambda: bot.taken and personal.asked, 30, "both messages")
        finally:
            made.stop()
    (group,), (own,) = bot.taken, personal.asked
    assert "<@LiSi>" in str(group)
    assert own.json["alerts"][0]["labels"]["user"] == "wang"
