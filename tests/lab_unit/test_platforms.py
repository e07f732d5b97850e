"""Platforms in the lab: versions, manifests and the table of results, without building or running them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.platforms import table
from tests.e2e.platforms.table import NOT_RUN, STEPS, page, results
from tests.e2e.platforms.test_platforms import ADAPTERS
from tests.lab.errors import LabError
from tests.lab.go_module import digest
from tests.lab.platforms import build, manifests
from tests.lab.platforms.build import MANIFESTS, build_all, copy_files, is_built, programs_dir
from tests.lab.platforms.catalogue import JOBSET, KUEUE, PLATFORMS, TRAINING_OPERATOR
from tests.lab.platforms.platform import Place, Platform

ADDRESS = "127.0.0.1:9443"
platforms = pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)


def place_of(platform: Platform, directory: Path) -> Place:
    return Place(directory, Path("/programs"), Path("/kubeconfig"), dict.fromkeys(platform.ports, 9000))


@platforms
def test_a_platform_has_a_version_and_checksums(platform: Platform) -> None:
    assert platform.module.version().startswith("v")
    text = (platform.module.directory / "go.mod").read_text()
    tools = {f"{platform.module.module}/{package}".removesuffix("/") for package in platform.module.programs.values()}
    assert all(tool in text for tool in tools)
    for name in ("go.mod", "go.sum"):
        assert "://" not in (platform.module.directory / name).read_text()


@platforms
def test_processes_are_programs_that_are_built_and_listen_on_loopback(platform: Platform, tmp_path: Path) -> None:
    place = place_of(platform, tmp_path)
    commands = platform.commands(place)
    assert set(commands) <= set(platform.module.programs)
    assert set(platform.health) <= set(commands)
    text = json.dumps(commands) + (platform.config(place) if platform.config else "")
    assert "0.0.0.0" not in text
    assert text.count("127.0.0.1") >= len(platform.health)


def test_every_platform_of_the_lab_has_the_scenario() -> None:
    assert [kind.platforms[0] for kind in ADAPTERS.values() if len(kind.platforms) == 1] == list(PLATFORMS)


def test_what_is_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = programs_dir(JOBSET, tmp_path)
    assert programs.name == f"jobset-{digest([JOBSET.module])}"
    assert not is_built(JOBSET, tmp_path)
    programs.mkdir()
    (programs / "jobset").write_text("#!/bin/sh\n")
    (programs / "jobset").chmod(0o755)
    monkeypatch.setattr(build, "find_go", lambda *_: pytest.fail("it is built again"))
    build_all(tmp_path, pytest.fail, [JOBSET])


def test_a_build_keeps_manifests_and_removes_other_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    for pattern in JOBSET.files:
        file = source / pattern.replace("*", "one")
        file.parent.mkdir(parents=True)
        file.write_text("kind: X\n")
    (cache / "jobset-0123456789ab").mkdir(parents=True)
    monkeypatch.setattr(build, "find_go", lambda *_: Path("/bin/true"))
    monkeypatch.setattr(build, "source_of", lambda *_: source)
    monkeypatch.setattr(type(JOBSET.module), "compile", compile_nothing)
    said: list[str] = []
    build_all(cache, said.append, [JOBSET])
    assert said[0].startswith("compiling jobset v")
    assert sorted(path.name for path in cache.iterdir()) == ["build.lock", programs_dir(JOBSET, cache).name]
    assert is_built(JOBSET, cache)
    assert list(manifests.read(programs_dir(JOBSET, cache) / MANIFESTS, JOBSET.definitions)) == [{"kind": "X"}]


def compile_nothing(_module: Any, _go: Path, program: str, work: Path) -> None:
    (work / "bin" / program).write_text("#!/bin/sh\n")
    (work / "bin" / program).chmod(0o755)


def test_a_source_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"has no crds/\*"):
        copy_files(tmp_path, ("crds/*",), tmp_path / "target")


def definition(*versions: str) -> dict[str, Any]:
    served = [{"name": name, "served": name != "v1alpha1"} for name in versions]
    spec = {"group": "kueue.x-k8s.io", "names": {"plural": "workloads"}, "versions": served}
    return {"kind": "CustomResourceDefinition", "metadata": {"name": "workloads.kueue.x-k8s.io"}, "spec": spec}


@pytest.mark.parametrize(
    ("platform", "authority", "converted"),
    [(KUEUE, b"certificate", True), (JOBSET, b"certificate", False), (KUEUE, None, False)],
)
def test_versions_are_converted_by_the_webhook(platform: Platform, authority: bytes, converted: bool) -> None:
    given = definition("v1beta1", "v1beta2")
    (found,) = manifests.definitions([given, {"kind": "Service"}], platform, ADDRESS, authority)
    assert "conversion" not in given["spec"]
    expect = {"url": f"https://{ADDRESS}/convert", "caBundle": "Y2VydGlmaWNhdGU="}
    client = found["spec"].get("conversion", {}).get("webhook", {}).get("clientConfig")
    assert client == (expect if converted else None)


def test_where_resources_are_served() -> None:
    found = manifests.served_versions(definition("v1alpha1", "v1beta1", "v1beta2"))
    assert found == ["/apis/kueue.x-k8s.io/v1beta1", "/apis/kueue.x-k8s.io/v1beta2"]


def configuration(*names: str) -> dict[str, Any]:
    hooks = [
        {
            "name": name,
            "clientConfig": {"service": {"path": f"/{name}"}},
            "rules": [{"resources": ["pods" if name == "mpod.kb.io" else "jobsets"]}],
        }
        for name in names
    ]
    return {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "x"}, "webhooks": hooks}


def test_webhooks_are_called_by_url_and_see_pods_of_the_platform_alone() -> None:
    given = [configuration("mjobset.kb.io", "mpod.kb.io", "mother.kb.io"), configuration("mother.kb.io")]
    (found,) = manifests.webhook_configurations(given, JOBSET, ADDRESS, b"certificate")
    assert found["metadata"]["name"] == "jobset-webhooks"
    assert [hook["name"] for hook in found["webhooks"]] == ["mjobset.kb.io", "mpod.kb.io"]
    assert found["webhooks"][0]["clientConfig"]["url"] == f"https://{ADDRESS}/mjobset.kb.io"
    assert "objectSelector" not in found["webhooks"][0]
    (expression,) = found["webhooks"][1]["objectSelector"]["matchExpressions"]
    assert expression == {"key": JOBSET.pod_label, "operator": "Exists"}


def test_without_a_certificate_a_webhook_keeps_its_service() -> None:
    (name,) = TRAINING_OPERATOR.webhooks
    (found,) = manifests.webhook_configurations([configuration(name)], TRAINING_OPERATOR, ADDRESS, None)
    assert found["metadata"]["name"] == TRAINING_OPERATOR.webhook_configuration
    assert found["webhooks"][0]["clientConfig"] == {"service": {"path": f"/{name}"}}


def test_the_configuration_of_a_controller(tmp_path: Path) -> None:
    assert KUEUE.config is not None
    place = place_of(KUEUE, tmp_path)
    config = json.loads(KUEUE.config(place))
    assert config["webhook"] == {"host": "127.0.0.1", "port": 9000, "certDir": str(place.certificates)}
    assert config["integrations"] == {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}


REPORT = """\
<testsuites><testsuite>
<testcase classname="x" name="test_why_a_job_waits[Kueue]" time="12.4"/>
<testcase classname="x" name="test_a_zombie_is_released[Kueue]" time="3"><failure message="no"/></testcase>
<testcase classname="x" name="test_a_zombie_is_released[JobSet]" time="3"><skipped message="no"/></testcase>
<testcase classname="x" name="test_of_something_else[Kueue]" time="3"/>
</testsuite></testsuites>
"""


def test_results_become_a_table(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    report.write_text(REPORT)
    found = results(report)
    assert found == {
        ("Kueue", "test_why_a_job_waits"): "12 s",
        ("Kueue", "test_a_zombie_is_released"): "**failed**",
        ("JobSet", "test_a_zombie_is_released"): NOT_RUN,
    }
    rows = [line for line in page(ADAPTERS, found).splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(ADAPTERS)
    (row,) = [line for line in rows if line.startswith("| Kueue |")]
    assert row.split(" | ")[1:7] == [KUEUE.module.version(), NOT_RUN, "12 s", NOT_RUN, "**failed**", NOT_RUN]
    assert "| no public code |" in rows[-1]


def test_every_step_is_a_test() -> None:
    text = (Path(table.__file__).parent / "test_platforms.py").read_text(encoding="utf-8")
    assert [line.split("(")[0] for line in text.split("\ndef ")[1:] if line.startswith("test_")] == list(STEPS)
