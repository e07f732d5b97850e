"""Table of platforms: where each platform records the user, job and queue of its pods.

A rule consists of selectors; `monitor.cluster.selectors` describes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec.structs import replace

from monitor.cluster.selectors import parse_selector
from monitor.facts.gpu_sharing import POD_ANNOTATIONS
from monitor.kube.decode.pod import PodFieldFilter

_COMPLETION_INDEX = (
    "label:batch.kubernetes.io/job-completion-index",
    "annotation:batch.kubernetes.io/job-completion-index",
)
USER_LABELS = ("userName", "user", "owner")
# Annotations used for more than identity: static pods by hash, and the gang of a pod.
ALSO_REQUIRED = (
    "kubernetes.io/config.mirror", "kubernetes.io/config.hash", "scheduling.k8s.io/group-name", *POD_ANNOTATIONS,
)  # fmt: skip


class PlatformRule(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Selectors for the pods of one platform. `kind` is the kind of its jobs.

    `inference`: whether they wait for requests, like an inference service; None: another rule decides.
    `trusted` are the selectors of `user` whose values tenants cannot write: only they outrank a namespace's owner.
    """

    name: str
    when: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    job: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    kind: str | None = None
    inference: bool | None = None
    trusted: tuple[str, ...] = ()

    def selectors(self) -> Iterable[str]:
        """All selectors of the rule."""
        for entry in self.when:
            yield from entry.split(" & ")
        for field in (self.user, self.job, self.role, self.index, self.queue):
            yield from field


def check_rule(rule: PlatformRule) -> None:
    """Raise ValueError that says what to write if a selector of the rule is invalid."""
    for text in rule.selectors():
        parse_selector(text)


def required_fields(rules: Iterable[PlatformRule], also: Iterable[str] = ALSO_REQUIRED) -> PodFieldFilter:
    """Annotations and environment variables that the rules read from pods."""
    selectors = [parse_selector(text) for rule in rules for text in rule.selectors()]
    return PodFieldFilter(
        annotations=frozenset(also).union(s.key for s in selectors if s.source == "annotation"),
        env=frozenset(s.key for s in selectors if s.source == "env"),
    )


def plain_rule(user_labels: Iterable[str] = USER_LABELS) -> PlatformRule:
    """Rule for pods of no platform; it always yields a user and a job."""
    return PlatformRule(
        name="plain",
        user=(*(f"label:{label}" for label in user_labels), "namespace-owner", "namespace"),
        job=("owner",),
        index=("label:apps.kubernetes.io/pod-index", *_COMPLETION_INDEX),
        queue=("namespace",),
    )


def all_rules(
    extra: Iterable[PlatformRule] = (),
    user_labels: Iterable[str] = USER_LABELS,
    trusted: Collection[str] = (),
    *,
    inference: bool = True,
) -> tuple[PlatformRule, ...]:
    """Rules of the configuration, then the built-in ones, then the plain rule; `trusted` are selectors of users.

    Without `inference` no pod counts as an inference service.
    """
    rules = (*extra, *PLATFORMS, plain_rule(user_labels))
    of_users = (replace(rule, trusted=tuple(text for text in rule.user if text in trusted)) for rule in rules)
    return tuple(rule if inference else replace(rule, inference=None) for rule in of_users)


PLATFORMS: tuple[PlatformRule, ...] = (
    PlatformRule(
        name="openpai",
        when=("label:FC_FRAMEWORK_NAME",),
        user=("label:userName",),
        job=("env:PAI_JOB_NAME", "label:FC_FRAMEWORK_NAME"),  # the framework's name may be a hash
        role=("label:FC_TASKROLE_NAME",),
        index=("label:FC_TASK_INDEX", "annotation:FC_TASK_INDEX"),
        queue=("label:virtualCluster",),
        kind="Framework",
    ),
    PlatformRule(
        name="aiarts",
        when=("label:jobId & label:userName", "label:jobId & label:vcName"),  # jobId alone is too common
        user=("label:userName",),
        job=("label:jobId",),
        role=("label:jobRole",),
        queue=("label:vcName",),
    ),
    PlatformRule(
        name="volcano",
        when=(
            "label:volcano.sh/job-name",
            "annotation:volcano.sh/job-name",
            "label:volcano.sh/queue-name",
            "annotation:volcano.sh/queue-name",
            "annotation:scheduling.volcano.sh/queue-name",
        ),
        job=("label:volcano.sh/job-name", "annotation:volcano.sh/job-name"),
        role=("label:volcano.sh/task-spec", "annotation:volcano.sh/task-spec"),
        index=("label:volcano.sh/task-index", "annotation:volcano.sh/task-index"),
        queue=(
            "label:volcano.sh/queue-name",
            "annotation:volcano.sh/queue-name",
            "annotation:scheduling.volcano.sh/queue-name",
        ),
        kind="VolcanoJob",
    ),
    PlatformRule(
        name="kubeflow",
        when=("label:training.kubeflow.org/job-name", "label:group-name=kubeflow.org"),  # the latter until 2021
        job=("label:training.kubeflow.org/job-name", "label:job-name"),
        role=("label:training.kubeflow.org/replica-type", "label:replica-type"),
        index=("label:training.kubeflow.org/replica-index", "label:replica-index"),
    ),
    PlatformRule(
        name="trainer",  # Kubeflow's TrainJob, whose JobSet has the same name
        when=("label:jobset.sigs.k8s.io/jobset-name & label:trainer.kubeflow.org/trainjob-ancestor-step",),
        job=("label:jobset.sigs.k8s.io/jobset-name",),
        role=("label:trainer.kubeflow.org/trainjob-ancestor-step",),
        index=_COMPLETION_INDEX,
        kind="TrainJob",
    ),
    PlatformRule(
        name="jobset",
        when=("label:jobset.sigs.k8s.io/jobset-name",),
        job=("label:jobset.sigs.k8s.io/jobset-name",),
        role=("label:jobset.sigs.k8s.io/replicatedjob-name",),
        index=(*_COMPLETION_INDEX, "label:jobset.sigs.k8s.io/job-index"),
        kind="JobSet",
    ),
    PlatformRule(
        name="leaderworkerset",
        when=("label:leaderworkerset.sigs.k8s.io/name & label:leaderworkerset.sigs.k8s.io/worker-index=0",),
        job=("label:leaderworkerset.sigs.k8s.io/name",),
        role=("text:leader",),
        index=("label:leaderworkerset.sigs.k8s.io/group-index",),
        kind="LeaderWorkerSet",
    ),
    PlatformRule(
        name="leaderworkerset",
        when=("label:leaderworkerset.sigs.k8s.io/name",),
        job=("label:leaderworkerset.sigs.k8s.io/name",),
        role=("text:worker",),
        index=("label:leaderworkerset.sigs.k8s.io/worker-index",),
        kind="LeaderWorkerSet",
    ),
    PlatformRule(
        name="kueue",
        when=(
            "label:kueue.x-k8s.io/queue-name",
            "label:kueue.x-k8s.io/local-queue-name",
            "label:kueue.x-k8s.io/pod-group-name",
            "owner-queue",  # before Kueue 0.17, pods of a Job have no such label
        ),
        job=("label:kueue.x-k8s.io/pod-group-name",),
        queue=("label:kueue.x-k8s.io/queue-name", "label:kueue.x-k8s.io/local-queue-name", "owner-queue"),
    ),
    PlatformRule(
        name="kubedl",
        # Not by job-name: Kubernetes sets that label on the pods of every Job.
        when=(
            "annotation:kubedl.io/tenancy",
            "annotation:arena.kubeflow.org/username",
            "label:arena.kubeflow.org/username",
            "label:group-name=kubedl.io",
        ),
        user=(
            "annotation:kubedl.io/tenancy#user",
            "annotation:arena.kubeflow.org/username",
            "label:arena.kubeflow.org/username",
        ),
        job=("label:job-name",),
        role=("label:replica-type",),
        index=("label:replica-index",),
    ),
    PlatformRule(
        name="jupyterhub",
        when=("annotation:hub.jupyter.org/username", "label:hub.jupyter.org/username"),
        user=("annotation:hub.jupyter.org/username", "label:hub.jupyter.org/username"),
        # The default server of a user has no name.
        job=("annotation:hub.jupyter.org/servername", "label:hub.jupyter.org/servername", "name"),
        kind="Notebook",
        inference=False,
    ),
    PlatformRule(
        name="kubeflow-notebook",
        when=("label:notebook-name",),
        user=("namespace-owner",),
        job=("label:notebook-name",),
        kind="Notebook",
        inference=False,
    ),
    PlatformRule(
        name="kserve",
        when=("label:serving.kserve.io/inferenceservice",),
        job=("label:serving.kserve.io/inferenceservice",),
        role=("label:component",),
        kind="InferenceService",
        inference=True,
    ),
    PlatformRule(
        name="rayservice",
        when=("label:ray.io/originated-from-crd=RayService", "label:ray.io/cluster & label:ray.io/serve=true"),
        job=("label:ray.io/originated-from-cr-name", "label:ray.io/cluster"),
        role=("label:ray.io/node-type",),
        kind="RayService",
        inference=True,
    ),
    PlatformRule(
        name="knative",
        when=("label:serving.knative.dev/service",),
        job=("label:serving.knative.dev/service",),
        kind="KnativeService",
        inference=True,
    ),
    PlatformRule(
        name="ray",
        when=("label:ray.io/cluster", "label:ray.io/originated-from-cr-name"),
        job=("label:ray.io/originated-from-cr-name", "owner"),
        role=("label:ray.io/node-type",),
    ),
    PlatformRule(
        name="inference",  # job and user come from the next rules
        when=(
            "kind:InferenceService",
            "kind:RayService",
            "kind:Deployment & serves",
            "kind:StatefulSet & serves",
            "kind:LeaderWorkerSet & serves",
            "label:app.kubernetes.io/component=inference",
            "label:app.kubernetes.io/component=model-server",
            "label:leaderworkerset.sigs.k8s.io/name & label:app.kubernetes.io/component=serving",
            "label:seldon-deployment-id",
        ),
        inference=True,
    ),
    PlatformRule(
        name="kai",
        when=("label:kai.scheduler/queue",),
        queue=("label:kai.scheduler/queue",),
    ),
    PlatformRule(
        name="yunikorn",
        when=(
            "label:yunikorn.apache.org/app-id",
            "annotation:yunikorn.apache.org/app-id",
            "label:yunikorn.apache.org/queue",
            "annotation:yunikorn.apache.org/queue",
            "label:applicationId & label:queue",  # either alone is too common
        ),
        job=("label:yunikorn.apache.org/app-id", "annotation:yunikorn.apache.org/app-id", "label:applicationId"),
        queue=("label:yunikorn.apache.org/queue", "annotation:yunikorn.apache.org/queue", "label:queue"),
    ),
)
