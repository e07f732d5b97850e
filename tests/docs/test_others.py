"""Documented configurations of other programs are accepted by those programs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from monitor.config.root import Config
from tests.deploy.helm import CHART, Object, helm, one
from tests.docs.pages import Block, every_block
from tests.support import need

PROMETHEUS = {block.text: block for block in every_block(("yaml-prometheus",))}
ALERTMANAGER = {block.text: block for block in every_block(("yaml-alertmanager",))}
SERVICE_DISCOVERY = "kubernetes_sd_configs: [{role: pod}]"
OWN_VALUES = {"values.yaml": "{}"}  # what `helm get values` printed: nothing was set
# Values files by the name in their first line.
VALUES = OWN_VALUES | {
    block.text.splitlines()[0].removeprefix("# "): block.text for block in every_block(("yaml-values",))
}
SECRETS = "/etc/gpuwarden/secrets/"
HELM = sorted(
    {
        line
        for block in every_block(("sh",))
        for line in re.findall(r"^helm (?:install|upgrade) (?:.*\\\n)*.*$", block.text, re.MULTILINE)
    }
)


def checked(program: tuple[str, ...], text: str, directory: Path) -> None:
    """Check a configuration with a program; its secrets are in files."""
    need(shutil.which(program[0]) is not None, f"{program[0]} (Debian packages prometheus, prometheus-alertmanager)")
    secret = directory / "secret"
    secret.write_text("secret")
    file = directory / "config.yml"
    file.write_text(re.sub(r"(credentials_file): [^\s},]+", rf"\1: {secret}", text), encoding="utf-8")
    ran = subprocess.run([*program, str(file)], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("block", PROMETHEUS.values(), ids=str)
def test_prometheus(block: Block, tmp_path: Path) -> None:
    # Debian's promtool is built without Kubernetes support.
    text = block.text.replace(SERVICE_DISCOVERY, "static_configs: [{targets: [gpu-01]}]")
    checked(("promtool", "check", "config"), text, tmp_path)


@pytest.mark.parametrize("block", ALERTMANAGER.values(), ids=str)
def test_alertmanager(block: Block, tmp_path: Path) -> None:
    receiver = re.search(r"name: (\w+)", block.text)
    assert receiver
    route = "" if block.text.startswith("route:") else f"route: {{receiver: {receiver[1]}}}\n"
    checked(("amtool", "check-config"), route + block.text, tmp_path)


@pytest.mark.parametrize("line", HELM)
def test_the_chart_takes_what_is_set(line: str, tmp_path: Path) -> None:
    rendered(line, tmp_path)


def rendered(line: str, directory: Path) -> list[Object]:
    """Objects of a documented Helm command; values files are those of the documentation."""
    _, _, name, chart, *options = shlex.split(line.replace("\\\n", " "))
    assert chart == "deploy/helm/gpuwarden"
    for file, text in VALUES.items():
        (directory / file).write_text(text, encoding="utf-8")
    given = [each for each in options if each not in ("--create-namespace", "--reuse-values")]
    ran = helm("template", name, str(CHART), *(str(directory / each) if each in VALUES else each for each in given))
    assert ran.returncode == 0, ran.stderr
    return [found for found in yaml.load_all(ran.stdout, yaml.CSafeLoader) if found]


@pytest.mark.parametrize(("cluster", "limit"), [("beijing", "724Mi"), ("shanghai", "1274Mi"), ("guizhou", "3024Mi")])
def test_each_of_many_clusters_is_named_and_sized(cluster: str, limit: str, tmp_path: Path) -> None:
    (line,) = [each for each in HELM if f"alerts.cluster={cluster}" in each]
    objects = rendered(line, tmp_path)
    text = one(objects, "ConfigMap", "gpuwarden")["data"]["daemon.yaml"]
    for number, file in enumerate(re.findall(rf"{SECRETS}([\w-]+)", text)):
        (tmp_path / file).write_text(f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={number:020}")
    daemon = Config.model_validate(yaml.safe_load(text.replace(SECRETS, f"{tmp_path}/"))).daemon
    assert (daemon.alerts.cluster, daemon.lease is not None) == (cluster, True)
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == limit


def test_alertmanager_routes_each_cluster_to_its_daemon() -> None:
    (config,) = [yaml.safe_load(text) for text in ALERTMANAGER if text.startswith("route:")]
    hosts = {each["name"]: each["webhook_configs"][0]["url"].split(".")[1] for each in config["receivers"]}
    named = {line.partition("alerts.cluster=")[2].partition('"')[0] for line in HELM if "alerts.cluster=" in line}
    assert hosts == {name: name for name in named}
    routed = {each["receiver"]: each["matchers"] for each in config["route"]["routes"]}
    assert routed == {name: [f'cluster="{name}"'] for name in named - {config["route"]["receiver"]}}


def test_there_are_some() -> None:
    assert len(HELM) >= 2
    assert VALUES
    assert ALERTMANAGER
    assert any(SERVICE_DISCOVERY in text for text in PROMETHEUS)
