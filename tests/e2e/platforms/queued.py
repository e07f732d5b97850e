"""Objects in queues of Kueue, as their users submit them: Jobs of Kubernetes and JobSets."""

from __future__ import annotations

from monitor.facts.cluster import Identity
from tests.e2e.platforms.adapter import Job, Manifest, ObjectAdapter, Waiting
from tests.e2e.platforms.adapters import QUOTA, JobSet
from tests.lab.layout import GPU_RESOURCE
from tests.lab.platforms import catalogue


class Queued(ObjectAdapter):
    """Objects in a queue of Kueue, which their label names."""

    @property
    def queue(self) -> str:
        return "train"

    @property
    def cluster_queue(self) -> str:
        return f"{self.scene.name}-a100"

    def labels(self) -> dict[str, str]:
        return {"kueue.x-k8s.io/queue-name": self.queue}

    def prepare(self) -> None:
        version = "kueue.x-k8s.io/v1beta2"
        flavor = {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "a100"}}
        self.scene.create(f"/apis/{version}/resourceflavors", flavor)
        quota = [{"name": "a100", "resources": [{"name": GPU_RESOURCE, "nominalQuota": QUOTA}]}]
        spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": [GPU_RESOURCE], "flavors": quota}]}
        queue = {"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": self.cluster_queue}, "spec": spec}
        self.scene.create(f"/apis/{version}/clusterqueues", queue)
        local = {"clusterQueue": self.cluster_queue}
        self.scene.create_here(version, "localqueues", self.queue, kind="LocalQueue", spec=local)

    def waiting(self) -> Waiting:
        return Waiting(
            Job("large", gpus=2, user="han.mei"),
            "quota",
            en=(
                f"It waits in queue train: the quota of {self.cluster_queue} for {GPU_RESOURCE} (flavor a100) is used",
                "2 more needed.",
                f"{self.cluster_queue} has {QUOTA} of {GPU_RESOURCE}, 2 are reserved; this job needs 4.",
            ),
            zh=(
                f"它在队列 train 中排队：{self.cluster_queue} 的 {GPU_RESOURCE} 配额（flavor a100）已用完，还差 2。",
                f"{self.cluster_queue} 共有 {QUOTA} 个 {GPU_RESOURCE}，已预留 2 个；这个作业需要 4 个。",
            ),
        )


class Kueue(Queued):
    platforms = (catalogue.KUEUE,)
    left_out = "integrations with other kinds of job"
    resource = ("batch/v1", "jobs", "Job")

    def spec(self, job: Job) -> Manifest:
        counts = {"parallelism": job.pods, "completions": job.pods, "completionMode": "Indexed"}
        return {**counts, "backoffLimit": 0, "template": job.pod()}

    def owners(self, job: Job) -> list[Identity]:
        return [
            self.identity(job, index=str(index), platform="plain", workload_kind="Job") for index in range(job.pods)
        ]


class QueuedJobSet(JobSet, Queued):
    """The label is that of the JobSet; its Jobs and pods have none."""

    platforms = (catalogue.JOBSET, catalogue.KUEUE)
    left_out = ""
