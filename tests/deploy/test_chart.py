"""The chart renders objects that Kubernetes and gpuwarden accept."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # theirs
import pytest
import yaml

import monitor
from monitor.config.root import Config
from tests.deploy.helm import CHART, Object, helm, one, refusal, render, template
from tests.deploy.values import EVERYTHING, VALUES
from tests.support.action_keys import write_keys
from tests.support.command import run

# The oldest and the newest version with known schemas.
VERSIONS = ("1.25", kubernetes_validate.latest_version().rpartition(".")[0])
SECRETS, KEYS = "/etc/gpuwarden/secrets/", "/etc/gpuwarden/keys/"


def config_of(objects: list[Object], part: str) -> dict[str, Any]:
    """Configuration of the agent or the daemon as the chart renders it."""
    found: dict[str, Any] = yaml.safe_load(one(objects, "ConfigMap", "gpuwarden")["data"][f"{part}.yaml"])
    return found


def container_of(objects: list[Object], kind: str) -> dict[str, Any]:
    (found,) = one(objects, kind)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_helm_has_nothing_to_complain_about() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", VALUES)
def test_every_object_is_one_that_kubernetes_knows(name: str, version: str) -> None:
    objects = render(VALUES[name], version=f"{version}.0")
    for each in objects:
        if not each["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(each, version, strict=True)
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))


def test_a_changed_configuration_restarts_what_reads_it_and_nothing_else() -> None:
    def checksums(values: dict[str, Any]) -> tuple[str, str]:
        objects = render(values)
        agent, daemon = (one(objects, kind)["spec"]["template"] for kind in ("DaemonSet", "Deployment"))
        name = "checksum/config"
        return agent["metadata"]["annotations"][name], daemon["metadata"]["annotations"][name]

    agent, daemon = checksums({})
    assert checksums({}) == (agent, daemon)
    for_agent = checksums({"config": {"agent": {"mounts": ["/data"]}}})
    assert (for_agent[0] != agent, for_agent[1] == daemon) == (True, True)
    for_daemon = checksums({"config": {"daemon": {"cycle": "20s"}}})
    assert (for_daemon[0] == agent, for_daemon[1] != daemon) == (True, True)


@pytest.mark.parametrize("name", VALUES)
def test_the_configuration_is_one_that_gpuwarden_takes(name: str, tmp_path: Path) -> None:
    """Every referenced file is in a Secret that is mounted at that path."""
    objects = render(VALUES[name])
    for part, kind in (("agent", "DaemonSet"), ("daemon", "Deployment")):
        text = one(objects, "ConfigMap", "gpuwarden")["data"][f"{part}.yaml"]
        for file in re.findall(rf"{SECRETS}([\w-]+)", text):
            assert file in files_of(objects, kind), f"{part} names {file}"
            (tmp_path / file).write_text(f"https://example.com/{file}?key=0123456789")
        write_keys(tmp_path)
        Config.model_validate(yaml.safe_load(text.replace(SECRETS, f"{tmp_path}/").replace(KEYS, f"{tmp_path}/")))


def files_of(objects: list[Object], kind: str) -> set[str]:
    """Files of a workload's Secret."""
    volumes = one(objects, kind)["spec"]["template"]["spec"]["volumes"]
    (secret,) = [each["secret"] for each in volumes if each["name"] == "secrets"]
    if "items" in secret:
        return {each["path"] for each in secret["items"]}
    made = [each["data"] for each in objects if each["kind"] == "Secret"]
    return {*made[0]} if made else {"agent-token", "page-token", "metrics-token"}  # what an own Secret has to have


def test_nodes_get_public_keys_and_only_the_daemon_the_private_one() -> None:
    """The chart mounts what `gpuwarden keys --kubernetes` prints, and creates no keys itself."""
    printed = run("keys", "--kubernetes", "gpuwarden-keys")
    secret, public = yaml.safe_load_all(printed.stdout)
    assert (secret["kind"], [*secret["stringData"]]) == ("Secret", ["action-private-key"])
    assert (public["kind"], [*public["data"]]) == ("ConfigMap", ["action-public-key"])
    assert "private" not in public["data"]["action-public-key"]
    objects = render(EVERYTHING)
    volumes = {
        kind: next(each for each in one(objects, kind)["spec"]["template"]["spec"]["volumes"] if each["name"] == "keys")
        for kind in ("DaemonSet", "Deployment")
    }
    items = [{"key": "action-public-key", "path": "action-public-key"}]
    assert volumes["DaemonSet"] == {"name": "keys", "configMap": {"name": "gpuwarden-keys", "items": items}}
    assert volumes["Deployment"]["secret"]["secretName"] == "gpuwarden-keys"
    assert volumes["Deployment"]["secret"]["items"] == [{"key": "action-private-key", "path": "action-private-key"}]
    assert "action-private-key" not in yaml.safe_dump(one(objects, "DaemonSet"))
    assert config_of(objects, "agent")["agent"]["actions"]["public_key_file"] == f"{KEYS}action-public-key"
    assert (
        config_of(objects, "daemon")["daemon"]["cleanup"]["agents"]["private_key_file"] == f"{KEYS}action-private-key"
    )
    assert {each["metadata"]["name"] for each in objects if each["kind"] == "Secret"} == {"gpuwarden"}


def test_what_the_user_writes_wins() -> None:
    given = {"agent": {"listen": "0.0.0.0:1"}, "daemon": {"agents": {"interval": "3s"}, "access": {"tokens": [1]}}}
    objects = render({"config": given})
    assert config_of(objects, "agent")["agent"]["listen"] == "0.0.0.0:1"
    daemon = config_of(objects, "daemon")["daemon"]
    assert daemon["agents"] == {"interval": "3s", "port": 9835, "token_file": f"{SECRETS}agent-token"}
    assert [each if each == 1 else each["name"] for each in daemon["access"]["tokens"]] == ["metrics", 1]


@pytest.mark.parametrize(
    ("values", "limit", "reserved"),
    [
        ({}, "1024Mi", "256Mi"),
        ({"nodes": 5000}, "3024Mi", "756Mi"),
        ({"nodes": 5000, "resources": {"limits": {"memory": "4Gi"}}}, "4Gi", "756Mi"),
    ],
)
def test_the_memory_of_the_daemon_follows_the_number_of_nodes(
    values: dict[str, Any], limit: str, reserved: str
) -> None:
    (container,) = one(render({"daemon": values}), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": reserved}, "limits": {"memory": limit}}


def test_one_line_is_enough_for_wecom() -> None:
    url = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=SECRET-KEY"
    objects = render({"wecom": {"url": url}})
    receivers = config_of(objects, "daemon")["daemon"]["alerts"]["receivers"]
    assert receivers == [{"name": "wecom", "kind": "wecom", "url_file": f"{SECRETS}wecom-url"}]
    assert base64.b64decode(one(objects, "Secret")["data"]["wecom-url"]).decode() == url


@pytest.mark.parametrize(
    ("values", "timezone"),
    [
        ({}, None),
        ({"timezone": "Asia/Shanghai"}, "Asia/Shanghai"),
        ({"timezone": "UTC", "config": {"daemon": {"timezone": "Europe/Berlin"}}}, "Europe/Berlin"),
    ],
)
def test_one_time_zone_for_everything(values: dict[str, Any], timezone: str | None) -> None:
    assert config_of(render(values), "daemon")["daemon"].get("timezone") == timezone


@pytest.mark.parametrize("name", VALUES)
def test_no_secret_is_anywhere_but_in_the_secret(name: str) -> None:
    objects = render(VALUES[name])
    made = [value for each in objects if each["kind"] == "Secret" for value in each["data"].values()]
    words = [*made, *(base64.b64decode(value).decode() for value in made), "SECRET-KEY", "SECRET-PASSWORD"]
    others = yaml.safe_dump_all([each for each in objects if each["kind"] != "Secret"])
    assert [word for word in words if word in others] == []


def test_the_agent_has_no_account_and_the_daemon_one_that_expires() -> None:
    objects = render()
    agent = one(objects, "DaemonSet")["spec"]["template"]["spec"]
    daemon = one(objects, "Deployment")["spec"]["template"]["spec"]
    assert agent["automountServiceAccountToken"] is daemon["automountServiceAccountToken"] is False
    assert not any("projected" in each for each in agent["volumes"])
    (account,) = [each["projected"] for each in daemon["volumes"] if "projected" in each]
    assert account["sources"][0]["serviceAccountToken"]["expirationSeconds"] <= 3600


@pytest.mark.parametrize(
    ("values", "added"),
    [
        ({}, {"SYS_PTRACE", "DAC_READ_SEARCH"}),
        ({"actions": {"enabled": True, "keys": "k"}}, {"SYS_PTRACE", "DAC_READ_SEARCH", "KILL"}),
        (
            {"actions": {"enabled": True, "keys": "k", "datasetRoots": ["/mnt/share"]}},
            {"SYS_PTRACE", "DAC_READ_SEARCH", "KILL", "DAC_OVERRIDE", "FOWNER"},
        ),
    ],
)
def test_the_agent_gets_the_capabilities_that_it_needs_and_no_more(values: dict[str, Any], added: set[str]) -> None:
    context = container_of(render(values), "DaemonSet")["securityContext"]
    assert {*context["capabilities"]["add"]} == added
    assert context["capabilities"]["drop"] == ["ALL"]
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False


def test_only_the_daemon_is_closed_and_only_dataset_roots_are_writable() -> None:
    objects = render(EVERYTHING)
    daemon = container_of(objects, "Deployment")["securityContext"]
    assert daemon["capabilities"] == {"drop": ["ALL"]}
    mounts = {each["mountPath"]: each for each in container_of(objects, "DaemonSet")["volumeMounts"]}
    writable = {path for path, mount in mounts.items() if not mount.get("readOnly")}
    assert writable == {"/var/lib/gpuwarden", "/host/mnt/share"}
    assert "/driver/libnvidia-ml.so.1" not in mounts


@pytest.mark.parametrize(("version", "field"), [("1.29.0", False), ("1.30.0", True)])
def test_apparmor_is_said_as_the_version_understands_it(version: str, field: bool) -> None:
    pod = one(render(version=version), "DaemonSet")["spec"]["template"]
    annotation = "container.apparmor.security.beta.kubernetes.io/agent"
    assert ("appArmorProfile" in pod["spec"]["containers"][0]["securityContext"]) is field
    assert (annotation in pod["metadata"]["annotations"]) is not field


def test_monitors_leave_the_labels_of_series_alone() -> None:
    objects = render(EVERYTHING)
    agent = one(objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0]
    daemon = one(objects, "ServiceMonitor")["spec"]["endpoints"][0]
    for endpoint, job, key in (
        (agent, "gpuwarden-agent", "agent-token"),
        (daemon, "gpuwarden-daemon", "metrics-token"),
    ):
        drop, name = endpoint["relabelings"]
        assert endpoint["honorLabels"] is True
        assert all(re.fullmatch(drop["regex"], label) for label in ("namespace", "pod", "container", "service"))
        assert name == {"targetLabel": "job", "replacement": job}
        assert endpoint["authorization"]["credentials"]["key"] == key


def test_rules_and_dashboards_are_in_it() -> None:
    objects = render(EVERYTHING)
    groups = one(objects, "PrometheusRule")["spec"]["groups"]
    files = sorted((CHART / "files" / "alerts").glob("*.rules.yml"))
    assert groups == [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    boards = {name: text for each in objects if each["metadata"].get("labels", {}).get("grafana_dashboard")
              for name, text in each["data"].items()}  # fmt: skip
    shipped = {f"{file.parent.name}-{file.name}": file.read_text() for file in (CHART / "files").rglob("*.json")}
    assert {name: text.strip() for name, text in boards.items()} == {n: text.strip() for n, text in shipped.items()}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"agent": {"driver": {"from": "magic"}}}, "'/agent/driver/from': value must be one of 'runtime', 'host'"),
        ({"agent": {"hostnetwork": True}}, "'/agent': additional properties 'hostnetwork' not allowed"),
        ({"wecom": {"url": "KEY"}}, "'/wecom/url'"),
        ({"rbac": {"release": "yes please"}}, "'/rbac/release': got string, want boolean"),
        ({"secrets": {"agentToken": "short"}}, "'/secrets/agentToken'"),
        ({"secrets": {"extra": {"agent-token": "x"}}}, "secrets.extra holds agent-token"),
        ({"secrets": {"extra": {"a/b": "x"}}}, "'/secrets/extra': additional properties 'a/b' not allowed"),
        ({"config": {"agents": {}}}, "'/config': additional properties 'agents' not allowed"),
        ({"daemon": {"replicas": 2}}, "two daemons cannot share one volume"),
        ({"actions": {"datasetRoots": ["/mnt/share"]}}, "actions.enabled is not"),
        ({"actions": {"enabled": True}}, "gpuwarden keys --kubernetes gpuwarden-keys | kubectl create -n"),
        ({"secrets": {"actionToken": "a" * 40}}, "additional properties 'actionToken' not allowed"),
        ({"secrets": {"existing": "own"}, "wecom": {"url": "https://x/y"}}, "both set"),
        ({"config": {"daemon": {"token": "x"}}}, "config holds a secret"),
        ({"config": {"daemon": {"alerts": {"receivers": ["https://q/cgi-bin/webhook/send?key=K"]}}}}, "wecom.url"),
        (
            {"daemon": {"replicas": 2, "persistence": {"enabled": False}}, "wecom": {"url": "https://x/y"}},
            "tell the group twice",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_words(values: dict[str, Any], said: str) -> None:
    assert said in refusal(values)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == monitor.__version__


def test_a_token_that_is_not_given_is_a_new_one_each_time() -> None:
    one_time, other = (one(list(yaml.safe_load_all(template().stdout)), "Secret")["data"] for _ in range(2))
    assert {*one_time} == {"agent-token", "page-token", "metrics-token"}
    assert not {*one_time.values()} & {*other.values()}
    assert all(len(base64.b64decode(value)) >= 40 for value in one_time.values())


def test_every_value_is_documented_and_in_the_schema() -> None:
    """The schema has exactly the keys of values.yaml, so that typos are rejected."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    assert template(values).returncode == 0
    assert differences(values, schema, "") == {".global", ".config.agent", ".config.daemon", ".config.log_level"}


def differences(values: Any, schema: Any, path: str) -> set[str]:
    """Keys that only one of the two has, below closed objects."""
    if not isinstance(values, dict) or "properties" not in schema:
        return set()
    keys = {f"{path}.{key}" for key in {*values} ^ {*schema["properties"]}}
    shared = {*values} & {*schema["properties"]}
    keys -= {f"{path}.resources.claims", f"{path}.claims"}
    return keys.union(*(differences(values[key], schema["properties"][key], f"{path}.{key}") for key in shared))
