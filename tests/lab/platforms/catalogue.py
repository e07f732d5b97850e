"""The platforms that the lab can run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lab.go_module import Module
from tests.lab.images import IMAGE
from tests.lab.layout import LOOPBACK
from tests.lab.platforms.platform import HERE, Command, Place, Platform

# Scheduling cycles are shorter than by default, and nothing listens beyond loopback.
_QUICK = "--schedule-period=500ms"


def _controller(place: Place, program: str) -> dict[str, Command]:
    """The only process of a platform that reads a configuration file."""
    return {program: [str(place.programs / program), f"--config={place.config}"]}


def _controller_config(place: Place, version: str, program: str, **more: Any) -> str:
    """Configuration file of a controller: webhooks with the lab's certificate, no leader election, no metrics."""
    return json.dumps(
        {
            "apiVersion": version,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": place.address(program)},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": LOOPBACK, "port": place.ports["webhooks"], "certDir": str(place.certificates)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            **more,
        }
    )


def _volcano(place: Place) -> dict[str, Command]:
    def command(program: str, *options: str) -> Command:
        health = ["--enable-healthz=true", f"--healthz-address={place.address(program)}"]
        options = (f"--kubeconfig={place.kubeconfig}", "--leader-elect=false", *options)
        return [str(place.programs / program), *options, *health]

    conf = place.directory / "volcano-scheduler.conf"
    dump = f"--cache-dump-dir={place.directory}"
    return {
        "vc-controller-manager": command("vc-controller-manager"),
        "vc-scheduler": command("vc-scheduler", f"--scheduler-conf={conf}", _QUICK, dump),
    }


VOLCANO = Platform(
    Module(
        HERE / "volcano",
        "volcano.sh/volcano",
        {"vc-scheduler": "cmd/scheduler", "vc-controller-manager": "cmd/controller-manager", "vcctl": "cmd/cli"},
    ),
    _volcano,
    definitions=("config/crd/volcano/bases/*.yaml", "config/crd/jobflow/bases/*.yaml"),
    sample="installer/helm/chart/volcano/config/volcano-scheduler.conf",
    health={"vc-controller-manager": "/healthz", "vc-scheduler": "/healthz"},
    namespace="volcano-system",
)


# By default workers wait until DNS knows their master, and the lab has no DNS.
_WORKERS_DO_NOT_WAIT = """\
- name: init-pytorch
  image: "{{.InitContainerImage}}"
  command: ["echo", "{{.MasterAddr}}"]
"""


def _training_operator(place: Place) -> dict[str, Command]:
    line = [
        str(place.programs / "training-operator"),
        "--enable-scheme=pytorchjob",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={place.address('training-operator')}",
        f"--webhook-server-port={place.ports['webhooks']}",
        f"--pytorch-init-container-image={IMAGE}",
        f"--pytorch-init-container-template-file={place.config}",
    ]
    return {"training-operator": line}


TRAINING_OPERATOR = Platform(
    Module(
        HERE / "training-operator",
        "github.com/kubeflow/training-operator",
        {"training-operator": "cmd/training-operator.v1"},
    ),
    _training_operator,
    definitions=("manifests/base/crds/kubeflow.org_pytorchjobs.yaml",),
    hooks=("manifests/base/webhook/manifests.yaml",),
    health={"training-operator": "/readyz"},
    # It starts only if it can put its own certificate into this configuration. The certificate is for a Service, and
    # the lab has none, so the webhook is that of a kind of job that the lab does not run.
    webhooks=("validator.jaxjob.training-operator.kubeflow.org",),
    webhook_configuration="validator.training-operator.kubeflow.org",
    config=lambda _place: _WORKERS_DO_NOT_WAIT,
    namespace="kubeflow",
    mounted=Path("/tmp/k8s-webhook-server/serving-certs"),
    secret="training-operator-webhook-cert",
)


KUEUE = Platform(
    Module(HERE / "kueue", "sigs.k8s.io/kueue", {"kueue": "cmd/kueue"}),
    lambda place: _controller(place, "kueue"),
    definitions=("config/components/crd/bases/*.yaml",),
    hooks=("config/components/webhook/manifests.yaml",),
    health={"kueue": "/readyz"},
    webhooks=tuple(
        f"{kind}{name}.kb.io"
        for kind in "mv"
        for name in ("clusterqueue", "cohort", "resourceflavor", "workload", "job", "jobset")
    ),
    config=lambda place: _controller_config(
        place,
        "config.kueue.x-k8s.io/v1beta2",
        "kueue",
        integrations={"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
        featureGates={"VisibilityOnDemand": False},  # a server on a fixed port
    ),
    namespace="kueue-system",
    certificate=True,
    mounted=Path("/etc/kueue/metrics/certs"),
    converted=tuple(
        f"{plural}.kueue.x-k8s.io"
        for plural in ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
    ),
)

JOBSET = Platform(
    Module(HERE / "jobset", "sigs.k8s.io/jobset", {"jobset": ""}),
    lambda place: _controller(place, "jobset"),
    definitions=("config/components/crd/bases/*.yaml",),
    hooks=("config/components/webhook/manifests.yaml",),
    health={"jobset": "/readyz"},
    webhooks=("mjobset.kb.io", "vjobset.kb.io", "mpod.kb.io", "vpod.kb.io"),
    pod_label="jobset.sigs.k8s.io/jobset-name",
    config=lambda place: _controller_config(place, "config.jobset.x-k8s.io/v1alpha1", "jobset"),
    namespace="jobset-system",
    certificate=True,
)

LEADERWORKERSET = Platform(
    Module(HERE / "leaderworkerset", "sigs.k8s.io/lws", {"leaderworkerset": "cmd"}),
    lambda place: _controller(place, "leaderworkerset"),
    definitions=("config/crd/bases/*.yaml",),
    hooks=("config/webhook/manifests.yaml",),
    health={"leaderworkerset": "/readyz"},
    webhooks=("mleaderworkerset.kb.io", "vleaderworkerset.kb.io", "mpod.kb.io", "vpod.kb.io"),
    pod_label="leaderworkerset.sigs.k8s.io/name",
    config=lambda place: _controller_config(place, "config.lws.x-k8s.io/v1alpha1", "leaderworkerset"),
    namespace="lws-system",
    certificate=True,
)


def _frameworkcontroller(place: Place) -> dict[str, Command]:
    """It reads its configuration from the working directory."""
    line = ["/usr/bin/env", f"--chdir={place.directory}", str(place.programs / "frameworkcontroller")]
    return {"frameworkcontroller": line}


FRAMEWORKCONTROLLER = Platform(
    Module(
        HERE / "frameworkcontroller",
        "github.com/microsoft/frameworkcontroller",
        {"frameworkcontroller": "cmd/frameworkcontroller"},
    ),
    _frameworkcontroller,
    sample="example/config/default/frameworkcontroller.yaml",
    defines=("frameworks.frameworkcontroller.microsoft.com",),
)

PLATFORMS = (VOLCANO, TRAINING_OPERATOR, KUEUE, JOBSET, LEADERWORKERSET, FRAMEWORKCONTROLLER)
