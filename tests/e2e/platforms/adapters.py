"""The platforms: how users submit to each, and what it defines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import yaml

from monitor.facts.cluster import Identity
from tests.e2e.platforms.adapter import USER, Adapter, End, Job, Manifest, ObjectAdapter, Waiting
from tests.lab.layout import GPU_RESOURCE
from tests.lab.platforms import catalogue
from tests.lab.platforms.platform import Platform
from tests.support import free_port

COMMAND_LIMIT_SECONDS = 60
QUOTA = 4


class Volcano(ObjectAdapter):
    """Submitted, listed and deleted with vcctl, as in its users' guide."""

    platforms = (catalogue.VOLCANO,)
    left_out = "admission webhooks"
    resource = ("batch.volcano.sh/v1alpha1", "jobs", "Job")

    @property
    def queue(self) -> str:
        return f"{self.scene.name}-nlp"

    def prepare(self) -> None:
        version = "scheduling.volcano.sh/v1beta1"
        spec = {"weight": 1, "reclaimable": False, "capability": {GPU_RESOURCE: str(QUOTA)}}
        queue = {"apiVersion": version, "kind": "Queue", "metadata": {"name": self.queue}, "spec": spec}
        self.scene.create(f"/apis/{version}/queues", queue)

    def spec(self, job: Job) -> Manifest:
        task = {"name": "worker", "replicas": job.pods, "template": job.pod()}
        return {
            "schedulerName": "volcano",
            "queue": self.queue,
            "minAvailable": job.pods,
            "maxRetry": 1,
            "tasks": [task],
        }

    def submit(self, job: Job) -> None:
        file = self.places[0].directory / f"{job.name}.yaml"
        file.write_text(yaml.safe_dump(self.manifest(job)))
        assert f"run job {job.name} successfully" in self._vcctl("run", f"--filename={file}")
        assert job.name in self._vcctl("list")

    def remove(self, name: str) -> None:
        if name in self._vcctl("list"):
            self._vcctl("delete", f"--name={name}")

    def _vcctl(self, command: str, *options: str) -> str:
        where = [f"--namespace={self.scene.name}", f"--kubeconfig={self.places[0].kubeconfig}"]
        line = [str(self.places[0].programs / "vcctl"), "job", command, *where, *options]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=COMMAND_LIMIT_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def owners(self, job: Job) -> list[Identity]:
        return [
            self.identity(job, role="worker", index=str(index), platform="volcano", workload_kind="VolcanoJob")
            for index in range(job.pods)
        ]

    def waiting(self) -> Waiting:
        return Waiting(
            Job("large", gpus=2, user="han.mei"),
            "quota",
            en=(
                f"Its queue {self.queue} is full: the limit is {QUOTA} of {GPU_RESOURCE}, 2 are in use, and it needs 4",
                f"Largest holders in {self.queue}: {USER} (2).",
            ),
            zh=(f"所在队列 {self.queue} 已满：{GPU_RESOURCE} 上限 {QUOTA}，已用 2，它还需要 4。", f"{USER} (2)"),
        )


class PyTorchJob(ObjectAdapter):
    """Kubeflow's training-operator, whose jobs PAI DLC creates too."""

    platforms = (catalogue.TRAINING_OPERATOR,)
    left_out = "validating webhook, workers waiting for the address of their master"
    resource = ("kubeflow.org/v1", "pytorchjobs", "PyTorchJob")

    def spec(self, job: Job) -> Manifest:
        roles = {"Master": 1, "Worker": job.pods - 1}
        replicas = {
            role: {
                "replicas": count,
                "restartPolicy": "Never",
                # Pods share the network of their host, so each role has a port of its own.
                "template": job.pod(name="pytorch", ports=[{"name": "pytorchjob-port", "containerPort": free_port()}]),
            }
            for role, count in roles.items()
            if count
        }
        return {"pytorchReplicaSpecs": replicas, "runPolicy": {"cleanPodPolicy": "None"}}

    def owners(self, job: Job) -> list[Identity]:
        return [
            self.identity(job, role=role, index="0", platform="kubeflow", workload_kind="PyTorchJob")
            for role in ("master", "worker")[: job.pods]
        ]


class JobSet(ObjectAdapter):
    platforms: Sequence[Platform] = (catalogue.JOBSET,)
    resource = ("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet")

    def spec(self, job: Job) -> Manifest:
        spec = {"parallelism": job.pods, "completions": job.pods, "backoffLimit": 0, "template": job.pod()}
        return {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": spec}}]}

    def owners(self, job: Job) -> list[Identity]:
        return [
            self.identity(job, role="workers", index=str(index), platform="jobset", workload_kind="JobSet")
            for index in range(job.pods)
        ]


class LeaderWorkerSet(ObjectAdapter):
    platforms = (catalogue.LEADERWORKERSET,)
    resource = ("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet")
    end = End.NEVER

    def spec(self, job: Job) -> Manifest:
        return {
            "replicas": 1,
            "leaderWorkerTemplate": {"size": job.pods, "workerTemplate": job.pod(restart="Always")},
        }

    def owners(self, job: Job) -> list[Identity]:
        roles = [("leader", 0), *(("worker", number) for number in range(1, job.pods))]
        known = {"platform": "leaderworkerset", "workload_kind": "LeaderWorkerSet"}
        return [self.identity(job, role=role, index=str(index), **known) for role, index in roles]


class FrameworkController(ObjectAdapter):
    """OpenPAI's controller of jobs, with the labels and the variable that OpenPAI writes."""

    platforms = (catalogue.FRAMEWORKCONTROLLER,)
    left_out = "the rest of OpenPAI"
    resource = ("frameworkcontroller.microsoft.com/v1", "frameworks", "Framework")
    end = End.REMOVED

    @property
    def queue(self) -> str:
        return "vision"

    def spec(self, job: Job) -> Manifest:
        environment = [{"name": "PAI_JOB_NAME", "value": f"{job.user}~{job.name}"}]
        retry = {"fancyRetryPolicy": False, "maxRetryCount": 0}
        task = {
            "retryPolicy": retry,
            "podGracefulDeletionTimeoutSec": 60,
            "pod": job.pod(labels={"virtualCluster": self.queue}, env=environment),
        }
        completion = {"minFailedTaskCount": 1, "minSucceededTaskCount": -1}
        role = {
            "name": "worker",
            "taskNumber": job.pods,
            "frameworkAttemptCompletionPolicy": completion,
            "task": task,
        }
        return {"executionType": "Start", "retryPolicy": retry, "taskRoles": [role]}

    def has_finished(self, name: str) -> bool:
        version, plural, _ = self.resource
        found = self.scene.api.get(self.scene.path(version, plural, name))
        return bool(found.get("status", {}).get("state") == "Completed")

    def owners(self, job: Job) -> list[Identity]:
        return [
            Identity(
                user=job.user,
                job=f"{job.user}~{job.name}",
                role="worker",
                index=str(index),
                queue=self.queue,
                platform="openpai",
                workload_kind="Framework",
            )
            for index in range(job.pods)
        ]


class Configured(Adapter):
    """A platform without public code: the test creates its pods, and a rule of the configuration identifies them."""

    left_out = "the platform: the test creates pods, a rule of the configuration identifies them"

    def submit(self, job: Job) -> None:
        for number in range(job.pods):
            pod = job.pod()
            pod["metadata"] |= {"name": f"{job.name}-{number}", **self.marks(job)}
            self.scene.api.create(self.scene.path("v1", "pods"), {"apiVersion": "v1", "kind": "Pod", **pod})

    def marks(self, job: Job) -> Manifest:
        """Labels and annotations of the platform's pods."""
        raise NotImplementedError

    def remove(self, name: str) -> None:
        for number in range(2):
            self.scene.delete(f"{name}-{number}")

    def owners(self, job: Job) -> list[Identity]:
        return [self.identity(job, platform=self.rules[0]["name"], workload_kind="Pod")] * job.pods


class ModelArts(Configured):
    rules = (
        {
            "name": "modelarts",
            "when": ["annotation:modelarts/info"],
            "user": ["annotation:modelarts/info#owner"],
            "job": ["annotation:modelarts/info#job"],
            "queue": ["annotation:modelarts/info#pool"],
        },
    )

    @property
    def queue(self) -> str:
        return "pool-1"

    def marks(self, job: Job) -> Manifest:
        info = json.dumps({"owner": job.user, "job": job.name, "pool": self.queue})
        return {"labels": {}, "annotations": {"modelarts/info": info}}


class PaiDsw(Configured):
    rules = (
        {
            "name": "pai-dsw",
            "when": ["label:dsw/instance"],
            "user": ["label:dsw/user"],
            "job": ["label:dsw/instance"],
            "kind": "Notebook",
        },
    )

    def marks(self, job: Job) -> Manifest:
        return {"labels": {"dsw/instance": job.name, "dsw/user": job.user}}

    def owners(self, job: Job) -> list[Identity]:
        return [self.identity(job, platform="pai-dsw", workload_kind="Notebook")] * job.pods
