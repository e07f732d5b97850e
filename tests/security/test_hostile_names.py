"""Hostile names chosen by users, through every output."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import AgentMetrics
from monitor.alert.receivers.base import MailSettings
from monitor.alert.receivers.registry import KINDS
from monitor.base.logs import LogfmtFormatter
from monitor.cli.tables import print_view
from monitor.cluster.agents.snapshot import decode_snapshot
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.platforms import all_rules
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import UsageView
from monitor.facts.node import NodeSnapshot
from tests.alert.receivers.batches import batch, finding, notification, receiver, subject
from tests.cluster.builders import NOW, pod
from tests.fuzz.targets_cluster import view_of
from tests.security import lies
from tests.support.receivers.http_server import LocalServer, says
from tests.support.receivers.smtp_server import SmtpServer

TAGS = ("<@all>", "<!channel>", "<at id=all>", '<font color="warning">', "[x](http://evil)", "<script>")
EVIL = "a\r\nBcc: x@evil\r\n\x1b[31m\u202e\x00`**#" + "".join(TAGS)
TOOK = says(200, {"errcode": 0, "errmsg": "ok", "code": 0, "msg": "ok", "ok": True})
LINK = "[x](http://evil)"
# Fields that a chat renders as markup, and what would be more than text there. Titles are always plain text.
CHATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "wecom": ("markdown.content", ("<@all>", LINK, "<script>")),
    "dingtalk": ("markdown.text", ("<@all>", LINK, "<script>", '<font color="warning">a')),
    "feishu": ("card.elements.0.content", ("<at id=all>", LINK, "<script>")),
    "slack": ("attachments.0.blocks.0.text.text", ("<@all>", "<!channel>", "<script>")),
}
DATA = ("webhook", "alertmanager")  # machine-readable: labels are JSON and unchanged
OTHERS = ("mail", "console", "apprise")


def hostile() -> Any:
    found = finding(mount=EVIL, pod=EVIL, namespace=EVIL, user=EVIL, job=EVIL, image=EVIL)
    return batch(notification(subject(found), users=(EVIL,)))


def delivered(kind: str) -> list[Any]:
    """Request bodies that a receiver of this kind got."""
    with LocalServer(TOOK) as server:
        receiver(kind, f"{server.base}/hook?key=k").deliver(hostile())
        return [json.loads(asked.body) for asked in server.asked if asked.method == "POST"]


def texts(value: Any) -> list[str]:
    """All strings of a message."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


def test_every_kind_of_receiver_is_here() -> None:
    assert {*CHATS, *DATA, *OTHERS} == set(KINDS)


@pytest.mark.parametrize("kind", CHATS)
def test_in_a_chat_it_mentions_nobody_links_nowhere_and_breaks_no_line(kind: str) -> None:
    (body,) = delivered(kind)
    path, active = CHATS[kind]
    written: Any = body
    for step in path.split("."):
        written = written[int(step) if step.isdecimal() else step]
    assert [tag for tag in active if tag in written] == []
    assert "script" in written, "or it proves nothing"
    for text in texts(body):
        assert not {"\x1b", "\x00", "\u202e", "\r"} & set(text)
        assert not any(line.startswith("Bcc:") for line in text.split("\n"))


@pytest.mark.parametrize("kind", DATA)
def test_for_programs_it_is_data(kind: str) -> None:
    """The labels arrive unchanged, and a value adds no other label."""
    (body,) = delivered(kind)
    (alert,) = body["alerts"] if kind == "webhook" else body
    hostile_labels = ("mount", "pod", "namespace", "user", "job", "image")
    assert [alert["labels"][name] for name in hostile_labels] == [EVIL] * len(hostile_labels)
    assert set(alert["labels"]) <= {*hostile_labels, "alertname", "severity", "node", "cluster", "cause"}


def test_in_a_mail_it_is_no_header_and_no_tag(capsys: pytest.CaptureFixture[str]) -> None:
    with SmtpServer() as server:
        settings = MailSettings(
            host="127.0.0.1", port=server.port, sender="a@example.com", to=("b@example.com",), tls="none"
        )
        receiver("mail", mail=settings).deliver(hostile())
        (mail,) = server.taken
    assert mail.message["Bcc"] is None
    part = mail.message.get_body(("html",))
    assert part is not None
    html = part.get_content()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    receiver("console").deliver(hostile())
    assert all(line.isprintable() for line in capsys.readouterr().out.split("\n"))


def evil_snapshot() -> NodeSnapshot:
    """A snapshot in which every user-chosen string is hostile."""
    told = lies.truth()
    told["gpu_processes"][0]["name"] = EVIL
    told["containers"][0] |= dict.fromkeys(("name", "image", "pod_name", "namespace", "container"), EVIL)
    told["containers"][1]["user"] = EVIL
    told["pod_devices"][0] |= dict.fromkeys(("pod_name", "namespace", "container"), EVIL)
    told["images"][0]["images"][0]["names"] = [EVIL]
    told["disk"][1]["mount"] = EVIL
    return decode_snapshot(json.dumps(told).encode())


def test_in_metrics_it_is_one_label_and_adds_no_series() -> None:
    plain = msgspec.json.decode(json.dumps(lies.truth()), type=NodeSnapshot)
    assert len(_samples(evil_snapshot())) == len(_samples(plain))
    assert any(EVIL in sample.labels.values() for sample in _samples(evil_snapshot()))


def _samples(snapshot: NodeSnapshot) -> list[Any]:
    text = AgentMetrics().render(snapshot).decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def test_in_the_terminal_and_the_log_it_is_text() -> None:
    view = view_of(AgentFact(target="n1:9835", node="n1", snapshot=evil_snapshot(), received_at=NOW - 1))
    view = msgspec.structs.replace(view, users={EVIL: UsageView(gpus=1)})
    printed = io.StringIO()
    print_view(view, printed)
    assert "Bcc" in printed.getvalue(), "or it proves nothing"
    assert all(line.isprintable() for line in printed.getvalue().split("\n"))
    record = logging.LogRecord(EVIL, logging.INFO, "", 1, "pod %s", (EVIL,), None)
    assert LogfmtFormatter().format(record).isprintable()


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000, "\ud800", '{"user": {"a": 1}}', "x" * 250_000])
def test_an_annotation_of_a_tenant_costs_nobody_the_view(value: str) -> None:
    """KubeDL stores user names as JSON in an annotation that tenants can write."""
    noted = msgspec.structs.replace(pod("p"), annotations={"kubedl.io/tenancy": value})
    assert identify(noted, no_owners, all_rules(), {}).user == "team"
