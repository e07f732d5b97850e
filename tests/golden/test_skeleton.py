"""A skeleton changes with machine-readable content and not with prose."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.golden import __main__ as command
from tests.golden.capture import GOLDEN, stored
from tests.golden.schemas import without_class_names
from tests.golden.skeleton import masked, skeleton

# A golden file, a pattern in it, the replacement of the first match, and whether the skeleton changes.
CHANGES: list[tuple[str, str, str, bool]] = [
    ("agent.prom", r"# HELP (\S+) .*", r"# HELP \1 Other words.", False),
    ("agent.prom", r"# HELP gpuwarden_snapshot", "# HELP gpuwarden_snap", True),
    ("agent.prom", r"# TYPE (\S+) gauge", r"# TYPE \1 counter", True),
    ("agent.prom", r"gpuwarden_gpu_info\{", "gpuwarden_card_info{", True),
    ("daemon.prom", r'severity="info"', 'severity="notice"', True),
    ("daemon.prom", r" 2\.0\n", " 3.0\n", True),
    ("daemon-metrics.txt", r"node,model", "model,node", True),
    ("openapi.json", r'"summary": "[^"]+"', '"summary": "Other words."', False),
    ("openapi.json", r'"description": "Role[^"]+"', '"description": "Other words."', False),
    ("openapi.json", r'"description": "State, findings[^"]+"', '"description": "Other words."', False),
    ("openapi.json", r'"title": "gpuwarden"', '"title": "other"', True),
    ("openapi.json", r'"operationId": "view"', '"operationId": "look"', True),
    ("openapi.json", r'"/v1/view"', '"/v1/look"', True),
    ("openapi-components.txt", r"ClusterView", "Cluster", True),
    ("snapshot.schema.json", r'"description": "One node[^"]+"', '"description": "Other words."', False),
    ("snapshot.schema.json", r'"boot_id"', '"boot"', True),
    ("snapshot.schema.json", r'"type": "integer"', '"type": "number"', True),
    ("actions.schema.json", r'"remove-image"', '"drop-image"', True),
    ("kept.schema.json", r'"default": ""', '"default": "x"', True),
    ("kept.schema.json", r'"advice": \{', '"counsel": {', True),
    ("config.schema.json", r'"default": "info"', '"default": "debug"', True),
    ("config.schema.json", r'"description": "[^"]+"', '"description": "Other words."', False),
    ("config-errors.json", r"unknown key; did you mean 'static'\?", "there is no such key", True),
    ("config-errors.json", r'agents\.yml:11', "agents.yml:12", True),
    ("config-errors.json", r'"line": 11', '"line": 12', True),
    ("config-errors.json", r'"exit_code": 2', '"exit_code": 1', True),
    ("agent-pages.json", r'"error": "[^"]+"', '"error": "Other words."', False),
    ("agent-pages.json", r'"status": 401', '"status": 403', True),
    ("databases.sql", r" +-- NULL while it waits", "", False),
    ("databases.sql", r"receiver TEXT", "receiver BLOB", True),
    ("databases.sql", r"version 1", "version 2", True),
    ("findings.json", r'"severity": "critical"', '"severity": "warning"', True),
    ("lease.json", r"gpuwarden\.io/ran", "gpuwarden.io/runs", True),
    ("cli-help.txt", r"Run the per-node agent\.", "Other words.", False),
    ("cli-help.txt", r"Nodes with 8 GPUs each;", "Other words that are a lot longer.", False),
    ("cli-help.txt", r"--nodes", "--node", True),
    ("cli-help.txt", r"default: 6;", "default: 7;", True),
    ("cli-help.txt", r"  check-config ", "  config-check ", True),
    ("cli-help.txt", r"Usage: gpuwarden why \[OPTIONS\] NAME", "Usage: gpuwarden why [OPTIONS] POD", True),
    ("wecom.sent.json", r"Disk nearly full", "Little room left on the disk", False),
    ("wecom.sent.json", r"<font color=\\\"warning\\\">", '<font color=\\"info\\">', True),
    ("wecom.sent.json", r"<@oncall>", "<@all>", True),
    ("wecom.sent.json", r"warden\.example/alerts", "warden.example/alarms", True),
    ("wecom.sent.json", r'"X-Gpuwarden-Id"', '"X-Other-Id"', True),
    ("wecom.sent.json", r'"Content-Length",\s+"\d+"', '"Content-Length", "1"', False),
    ("wecom.sent.json", r'"msgtype": "markdown"', '"msgtype": "text"', True),
    ("dingtalk.sent.json", r"timestamp=\d+", "timestamp=1", True),
    ("feishu.sent.json", r'"template": "red"', '"template": "blue"', True),
    ("slack.sent.json", r'"fallback": "🔴[^"]+"', '"fallback": "🔴 Other words."', False),
    ("slack.sent.json", r'"fallback": "🔴', '"fallback": "🟠', True),
    ("slack.sent.json", r"\|Details and silencing>", "|Other words>", False),
    ("webhook.sent.json", r'"summary": "[^"]+"', '"summary": "Other words."', False),
    ("webhook.sent.json", r'"summary": "', '"short": "', True),
    ("webhook.sent.json", r"sha256=[0-9a-f]+", "sha256=0", False),
    ("webhook.sent.json", r"sha256=[0-9a-f]+", "md5=0", True),
    ("webhook.sent.json", r'"alertname": "DiskFull"', '"alertname": "FullDisk"', True),
    ("alertmanager.sent.json", r"/api/v2/alerts", "/api/v1/alerts", True),
    ("mail.sent.json", r'"Subject",\s+"🔴[^"]+"', '"Subject", "🔴 Other words."', False),
    ("mail.sent.json", r'"ops@example\.com"', '"dev@example.com"', True),
    ("template.json", r"gpu-zombie", "gpu-undead", True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pattern", "instead", "differs"), CHANGES, ids=lambda value: str(value)[:40])
def test_what_a_skeleton_notices(name: str, pattern: str, instead: str, differs: bool) -> None:
    before = stored(name)
    after = re.sub(pattern, instead, before, count=1)
    assert after != before, "the pattern is not in the file"
    assert (skeleton(name, after) != skeleton(name, before)) is differs


@pytest.mark.parametrize("name", GOLDEN)
def test_it_does_not_mask_twice(name: str) -> None:
    """Masking is idempotent."""
    once = skeleton(name, stored(name))
    assert once
    if not name.startswith("cli-help") and name != "config-errors.json":
        assert skeleton(name, once) == once


def test_the_sentence_of_an_error_may_change_where_text_and_json_agree() -> None:
    before = stored("config-errors.json")
    after = before.replace("unknown key; did you mean 'static'?", "there is no such key")
    assert before.count("did you mean 'static'") == 2
    assert skeleton("config-errors.json", after) == skeleton("config-errors.json", before)


def test_order_counts_in_json() -> None:
    told = json.loads(stored("snapshot.json"))
    turned = json.dumps(dict(reversed(told.items())), indent=2)
    assert skeleton("snapshot.json", turned) != skeleton("snapshot.json", stored("snapshot.json"))


def test_of_prose_only_what_programs_read_is_kept() -> None:
    text = "🔴 Disk is **full**\n\n[More](https://x.example/a?b=1) for <@zhang> and @oncall\n<https://x.example|words>"
    assert masked(text) == "🔴 …\n\n… https://x.example/a?b=1 <@zhang> @oncall\n… https://x.example"


def test_class_names_do_not_matter_and_field_names_do() -> None:
    def schema(one: str, other: str, field: str = "a") -> dict[str, object]:
        part = {"title": other, "type": "object", "properties": {"title": {"type": "string"}}}
        whole = {
            "title": one,
            "properties": {field: {"$ref": f"#/$defs/{other}"}, "items": {"default": {"title": "x"}}},
        }
        return {"$ref": f"#/$defs/{one}", "$defs": dict(sorted({one: whole, other: part}.items()))}

    made, names = without_class_names(schema("A", "B"))
    assert made == without_class_names(schema("Z", "B"))[0]
    assert json.dumps(made) == json.dumps(without_class_names(schema("Z", "B"))[0])
    assert made != without_class_names(schema("A", "B", field="b"))[0]
    assert names == {"root": "A", "root.a": "B"}
    assert made["$defs"]["root"]["properties"]["items"] == {"default": {"title": "x"}}
    assert made["$defs"]["root.a"] == {"type": "object", "properties": {"title": {"type": "string"}}}


def test_against_prints_what_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = {name: stored(name) for name in GOLDEN}
    monkeypatch.setattr(command, "_files_of", lambda _: now)
    assert command.main(["--against", "HEAD"]) == 0
    now["agent.prom"] = re.sub(r"(# HELP \S+) .*", r"\1 Other words.", now["agent.prom"])
    assert command.main(["--against", "HEAD"]) == 0
    now["receivers.txt"] = now["receivers.txt"].replace("slack", "slacks")
    assert command.main(["--against", "HEAD"]) == 1
    assert "-slacks\n+slack" in capsys.readouterr().out
    del now["words.txt"]
    command.main(["--against", "HEAD"])
    assert "words.txt: is new" in capsys.readouterr().out
    monkeypatch.setattr(command, "_files_of", lambda _: {})
    assert command.main(["--against", "HEAD"]) == 1


def test_files_of_a_revision_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # set by git hooks
        monkeypatch.delenv(name)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    files = tmp_path / "golden"
    files.mkdir()
    (files / "a.txt").write_text("中\n", encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for given in (["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *given], cwd=tmp_path, check=True)
    monkeypatch.setattr(command, "TOP", tmp_path)
    monkeypatch.setattr(command, "FILES", files)
    assert command._files_of("HEAD") == {"a.txt": "中\n"}
