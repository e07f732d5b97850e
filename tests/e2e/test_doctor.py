"""`gpuwarden doctor` in a real cluster: permissions are checked with the API server and named exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cleaning import RBAC
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import wait_until
from tests.support.command import quiet_environment, run

READ = ["get", "list", "watch"]
CORE = ["pods", "nodes", "resourcequotas", "namespaces"]
ADD_ONS = ["apps", "batch", "scheduling.volcano.sh", "kueue.x-k8s.io", "resource.k8s.io"]
ALL_READS = (
    {"apiGroups": [""], "resources": [*CORE, "events"], "verbs": READ},
    {"apiGroups": ADD_ONS, "resources": ["*"], "verbs": READ},
)
WITHOUT_EVENTS = ({"apiGroups": [""], "resources": CORE, "verbs": READ}, ALL_READS[1])


@pytest.fixture(scope="module")
def scene(lab: Lab) -> Iterator[Scene]:
    with Scene(lab, "doctor") as scene:
        yield scene


def account(scene: Scene, lab: Lab, name: str, rules: tuple[Any, ...], folder: Path) -> Path:
    """Create an account with these permissions and return its kubeconfig."""
    scene.create_here("v1", "serviceaccounts", name)
    role = f"{scene.name}-{name}"
    scene.create(f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": scene.name}
    binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
    scene.create(f"{RBAC}/clusterrolebindings", binding)
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = scene.api.create(scene.path("v1", "serviceaccounts", f"{name}/token"), wanted)["status"]["token"]
    config = yaml.safe_load(lab.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    wait_until(lambda: _may_list_pods(scene, name), 10, "the API server has heard of its rights")
    return path


def _may_list_pods(scene: Scene, name: str) -> bool:
    attributes = {"verb": "list", "resource": "pods"}
    spec = {"user": f"system:serviceaccount:{scene.name}:{name}", "resourceAttributes": attributes}
    review = scene.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(review["status"]["allowed"])


def examined(lab: Lab, kubeconfig: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    environ = quiet_environment(
        folder / "state",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=str(kubeconfig),
        **lab.agent_settings(),
    )
    done = run("doctor", "--json", "--lang", "en", environ=environ)
    assert (done.returncode, done.stderr) == (1, "")  # this cluster has no agents
    found: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(done.stdout):
        found.setdefault(row["check"], []).append(row)
    return found


def test_all_that_is_needed_may_be_read(lab: Lab, scene: Scene, tmp_path: Path) -> None:
    found = examined(lab, account(scene, lab, "reads", ALL_READS, tmp_path), tmp_path)
    assert [row["status"] for row in found["kubernetes.api"]] == ["ok"]
    assert [row["status"] for row in found["kubernetes.rights"]] == ["ok"]
    assert [row["status"] for row in found["agents.found"]] == ["problem"]
    assert "No pod has the agent label" in found["agents.found"][0]["what"]
    assert [found[f"node.{name}"][0]["status"] for name in ("kubelet", "runtimes", "cgroups")] == ["ok"] * 3


def test_a_right_that_is_missing_is_named(lab: Lab, scene: Scene, tmp_path: Path) -> None:
    found = examined(lab, account(scene, lab, "half", WITHOUT_EVENTS, tmp_path), tmp_path)
    (row,) = found["kubernetes.rights"]
    assert (row["status"], row["what"]) == ("problem", "This account may not list, watch events.")
    assert "gpuwarden-read" in row["do"]
