"""A small cluster that changes step by step, as the daemon sees it: agents are polled and joined with Kubernetes."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.detect.base import CleanupDeletion, RuleContext
from monitor.facts.actions import ActionsFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity, SourceView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import SmallFacts, make_cluster_facts
from monitor.facts.gpu import GpuFact, GpuInventory, XidCount, XidEvent, XidFacts
from monitor.facts.kept_facts import Moment
from monitor.facts.kernel import KernelEvent, KernelFacts
from monitor.facts.kube import ContainerStatusFact, EventFact, NodeFact, PodContainerFact, PodFact, TerminationFact
from monitor.facts.log_tails import LogTailFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.queues import QuotaFact
from monitor.facts.services import ServiceFact
from monitor.facts.storage import DiskFact, DiskIoFact, MountFact, ProbeFact
from monitor.facts.workload import LogFact, ShmFact
from tests.cluster.builders import card, device, process
from tests.detect import builders_storage as storage
from tests.detect.builders_nodes import SEEN, STANDALONE, collector, condition, service, unseen
from tests.explain.builders import GPU, NOW, event, node, pod, running_container, unschedulable, waiting

Variants = dict[str, Any]
NODES = ("n1", "n2", "n3")
PODS = ("p0", "p1", "p2")
IMAGE = "harbor.lab/nlp/bert:1"
REFUSED = 'Get "https://harbor.lab/v2/": dial tcp 10.0.0.5:443: connect: connection refused'
NO_DRIVER = (
    "OCI runtime create failed: stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded"
)
SERVER_GONE = "MountVolume.SetUp failed: mount failed: -t nfs nas:/data /x: mount.nfs: Connection timed out"
NO_SPACE = "failed to pull image: write /var/lib/docker: no space left on device"
DAY_SECONDS = 86400.0
ALICE = Identity(user="alice", job="bert", queue="vc1", platform="volcano", workload_kind="VolcanoJob")


def gpu_variants(name: str) -> dict[str, Variants]:
    """Values of the parts of a snapshot about GPUs. None is unknown."""

    def inventory(**fields: Any) -> GpuInventory:
        return GpuInventory(gpus=(card(0, name, **fields), card(1, name)))

    holder, lost = bound("p0", name), GpuFact(index=0, lost=True, error="GPU is lost")
    uuid = card(0, name).uuid
    counts = (XidCount(code=79, count=1, last_at=NOW - 60, gpu_uuid=uuid),)
    xid = XidFacts(counts=counts, recent=(XidEvent(at=NOW - 60, code=79, source="both", gpu_uuid=uuid),))
    return {
        "gpu": {
            "well": inventory(),
            "busy": inventory(utilization_ratio=0.9, memory_used_bytes=storage.GIB),
            "underused": inventory(utilization_ratio=0.05, memory_used_bytes=storage.GIB),
            "ghost": inventory(memory_used_bytes=9 * storage.GIB),
            "hot": inventory(throttle_reasons=("hw_thermal_slowdown",), temperature_celsius=91.0),
            "lost": GpuInventory(gpus=(lost, card(1, name))),
            "one": GpuInventory(gpus=(card(0, name),)),
            "unknown": None,
        },
        "gpu_processes": {
            "none": (),
            "of a pod": (process(node=name, pod_uid=holder.uid),),
            "of the host": (process(node=name, name="xmrig", uid=1001),),
            "stuck": (process(node=name, pod_uid=holder.uid, state="D"),),
            "of an unknown pod": (process(node=name, pod_uid="uid-unknown"),),
            "unknown": None,
        },
        "pod_devices": {
            "none": (),
            "of a pod": (device(holder, 0, name),),
            "of a pod that is gone": (device(bound("gone", name), 1, name),),
            "unknown": None,
        },
        "xid": {"none": XidFacts(), "off the bus": xid, "unknown": None},
        "kernel": kernel_variants(name),
    }


def kernel_variants(name: str) -> Variants:
    """Kernel events. Names of disks, servers, GPUs and containers are in other parts of the snapshot."""
    times: dict[str, Any] = {"since": NOW - 60, "at": NOW - 30, "message": "the line"}
    disk_errors = KernelEvent(kind="disk-error", device="sda", count=5, **times)
    nfs = KernelEvent(kind="nfs-not-responding", device="nas", **times)
    pcie = KernelEvent(kind="pcie-uncorrected", device=card(0, name).pci_bus_id or "0000:10:00.0", **times)
    oom = KernelEvent(kind="container-oom", device="python", container_id="id-train", pod_uid="uid-p0", **times)
    recovered = KernelEvent(kind="nfs-recovered", device="nas", since=NOW, at=NOW)
    return {
        "none": KernelFacts(),
        "one line": KernelFacts(recent=(structs.replace(disk_errors, count=1),)),
        "several": KernelFacts(recent=(disk_errors, nfs, pcie, oom)),
        "NFS recovered": KernelFacts(recent=(nfs, recovered, pcie)),
        "GPU lost": KernelFacts(recent=(KernelEvent(kind="gpu-lost", device="0000:10:00.0", **times),)),
        "unknown": None,
    }


def disk(used: float, **fields: Any) -> DiskFact:
    return storage.disk(used=used, roles=("system", "runtime"), **fields)


def storage_variants() -> dict[str, Variants]:
    """Values of the parts of a snapshot about disks, images and containers. None is unknown."""
    io: dict[str, Any] = {
        "device": "sda1", "read_bytes_total": 0, "written_bytes_total": 10**9, "reads_total": 1, "writes_total": 1,
        "busy_seconds_total": 1.0, "queue_seconds_total": 1.0, "in_flight": 1, "mounts": ("/",),
    }  # fmt: skip
    big, small = storage.image(IMAGE, 60), storage.image("mine:1", 30, "train")
    shm = {used: ShmFact(size_bytes=100, used_bytes=used, device=1, container_id="id-train") for used in (10, 99)}
    crash = LogTailFact(container_id="id-crash", cause="cuda-oom", line="CUDA out of memory")
    log = LogFact(container_id="id-train", size_bytes=30 * storage.GIB, written_at=NOW)
    mounts = {state: (MountFact(path="/nas", state=state, since=NOW - 60),) for state in ("ok", "hung", "missing")}
    return {
        "disk": {
            "well": (disk(20), storage.nas(used=80, size=400)),
            "full": (disk(85), storage.nas(used=390, size=400)),
            "read-only": (disk(20, read_only=True), storage.nas(used=80, size=400)),
            "NAS hangs": (disk(20), storage.hung_nas()),
            "NAS has lost data": (disk(20), storage.nas(used=10, size=400)),
            "none": (),
            "unknown": None,
        },
        "disk_io": {
            "well": (DiskIoFact(busy_ratio=0.1, queue_length=0.1, **io),),
            "saturated": (DiskIoFact(busy_ratio=0.99, queue_length=9.0, **io),),
            "unknown": None,
        },
        "mounts": {**mounts, "unknown": None},
        "images": {
            "none": (storage.cache(),),
            "large": (storage.cache(big, total=60),),
            "several": (storage.cache(big, small, total=90),),
            "unknown": None,
        },
        "runtime_usage": {
            "little": (storage.usage(),),
            "large": (storage.usage({"train": 40}),),
            "unknown": None,
        },
        "containers": {
            "none": (),
            "of a pod": (storage.container(pod="p0"),),
            "of nobody": (storage.container(pod=None, user=None),),
            "unknown": None,
        },
        "logs": {"none": (), "large": (log,), "unknown": None},
        "log_tails": {"none": (), "of a crash": (crash,), "unknown": None},
        "shm": {"well": (shm[10],), "full": (shm[99],), "unknown": None},
    }


def probed(**fields: Any) -> tuple[ProbeFact, ...]:
    return (ProbeFact(target="https://harbor.lab", at=NOW, **fields),)


AGENT_VARIANTS: dict[str, Variants] = {
    "probes": {
        "reached": probed(ok=True),
        "refused": probed(ok=False, stage="tcp", cause="refused", error="refused"),
        "not trusted": probed(ok=False, stage="tls", cause="tls-untrusted", error="x509"),
        "none": (),
        "unknown": None,
    },
    "actions": {
        "well": ActionsFact(enabled=True),
        "one refused": ActionsFact(enabled=True, refused={"token": 1}),
        "two refused": ActionsFact(enabled=True, refused={"token": 2}),
        "unknown": None,
    },
    "collectors": {
        "well": (),
        "one hangs": (collector("disk", hung_since=NOW - 60),),
        "two fail": (collector("disk", outcome="failed", succeeded_at=NOW - 100), collector("gpu", hung_since=NOW)),
        "probes never worked": (collector("probes", outcome="failed", succeeded_at=None),),
        "no disk": (collector("disk", outcome="absent"),),
    },
}


def bound(name: str, where: str | None, **fields: Any) -> PodFact:
    """A pod that asks for a GPU."""
    given: dict[str, Any] = {"phase": "Running", "node": where, "gpus": 1, "age": 9000.0, "started_at": NOW - 9000}
    given["statuses"] = (running_container(container_id="id-train"),)
    given["containers"] = (PodContainerFact(name="main", image=IMAGE, limits={GPU: 1.0}),)
    return pod(name, **(given | fields))


CRASHED = TerminationFact(reason="Error", exit_code=1, finished_at=NOW, container_id="id-crash")


def terminated(end: TerminationFact) -> ContainerStatusFact:
    """A container that is not restarted."""
    return ContainerStatusFact(name="main", state="terminated", **structs.asdict(end))


def pod_variants(name: str) -> Variants:
    """States of a pod. None: it is gone."""
    starting: dict[str, Any] = {"phase": "Pending", "age": 100.0}
    unscheduled = unschedulable("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    pending: dict[str, Any] = {**starting, "statuses": (), "conditions": unscheduled}
    return {
        "runs on n1": bound(name, "n1"),
        "runs on n2": bound(name, "n2"),
        "is deleted": bound(name, "n1", deletion_at=NOW - 100),
        "has finished": bound(name, "n1", phase="Succeeded", statuses=()),
        "is created": bound(name, "n1", **starting, statuses=(waiting("ContainerCreating"),)),
        "is refused": bound(name, "n1", **starting, statuses=(waiting("ErrImagePull", REFUSED),)),
        "has no space": bound(name, "n2", **starting, statuses=(waiting("ErrImagePull", NO_SPACE),)),
        "crashes": bound(name, "n1", statuses=(waiting("CrashLoopBackOff", "back-off", restart_count=7),)),
        "has just crashed": bound(name, "n1", statuses=(waiting("CrashLoopBackOff", "back-off", last=CRASHED),)),
        "has just failed": bound(name, "n1", phase="Failed", statuses=(terminated(CRASHED),)),
        "has no driver": bound(name, "n1", statuses=(waiting("RunContainerError", NO_DRIVER),)),
        "waits": bound(name, None, **pending),
        "waits for two": bound(name, None, **pending, gpus=2),
        "is gone": None,
    }


def event_variants(name: str) -> Variants:
    """Events of a pod, and of a job of the same name."""
    about = bound(name, "n1")
    pulled = 'Successfully pulled image "harbor.lab/nlp/bert:1" in 20m0s. Image size: 9000000000 bytes.'
    key = f"requests.{GPU}"
    denied = f"Error creating: exceeded quota: gpus, requested: {key}=1, used: {key}=1, limited: {key}=1"
    job: dict[str, Any] = {"kind": "Job", "name": name, "involved_uid": f"uid-job-{name}"}
    return {
        "none": (),
        "refused": (event("Failed", f"Failed to pull image: {REFUSED}", about=about, container="main"),),
        "pulling": (
            event("Pulling", 'Pulling image "harbor.lab/nlp/bert:1"', about=about, container="main", ago=1000),
        ),
        "pulled": (event("Pulled", pulled, about=about, container="main", ago=30),),
        "not mounted": (event("FailedMount", "MountVolume.SetUp failed: timed out", about=about),),
        "server gone": (event("FailedMount", SERVER_GONE, about=about),),
        "over quota": (event("FailedCreate", denied, **job),),
    }


def node_variants(name: str) -> Variants:
    """States of a node. None: it is gone."""
    old: dict[str, Any] = {"created_at": NOW - 10 * DAY_SECONDS, "ready_since": NOW - DAY_SECONDS, "gpus": 2}
    return {
        "well": node(name, **old),
        "has one GPU": node(name, **(old | {"gpus": 1})),
        "silent": node(name, **(old | {"ready": None, "ready_since": NOW - 5})),
        "not ready": node(name, **(old | {"ready": False, "ready_since": NOW + 100})),
        "joins": node(name, **(old | {"ready": False, "created_at": NOW, "ready_since": NOW})),
        "short of disk": node(name, **old, conditions=(condition("DiskPressure", since=NOW),)),
        "marked as faulty": node(name, **old, conditions=(condition("GpuXidError", since=NOW),)),
        "gone": None,
    }


PARTS = {name: gpu_variants(name) | storage_variants() | AGENT_VARIANTS for name in NODES}
POD_STATES = {name: pod_variants(name) for name in PODS}
EVENTS = {name: event_variants(name) for name in PODS}
NODE_STATES = {name: node_variants(name) for name in NODES}
SOURCES: dict[str, tuple[SourceView, ...]] = {
    "seen": SEEN,
    "pods lost": unseen("pods"),
    "nodes lost": unseen("nodes"),
    "events lost": unseen("events"),
    "no Kubernetes": STANDALONE,
}
SERVICES: dict[str, tuple[ServiceFact, ...]] = {
    "none": (),
    "well": (service(ok=True, failing_since=None),),
    "refused": (service(cause="refused", failing_since=NOW - 5),),
    "registry down": (service("harbor", kind="harbor", target="https://harbor.lab/api", cause="timeout"),),
}
ONE_GPU = {f"requests.{GPU}": 1.0}
QUOTAS: dict[str, tuple[QuotaFact, ...]] = {
    "none": (),
    "used up": (QuotaFact(uid="q", name="gpus", namespace="team-a", hard=ONE_GPU, used=ONE_GPU),),
}
DELETIONS: dict[str, tuple[CleanupDeletion, ...]] = {
    "none": (),
    "on the NAS": (CleanupDeletion("n1", "/nas/old", 60 * storage.GIB, NOW - 10, NOW),),
}


def complete_facts(moment: Moment) -> ClusterFacts:
    """The facts of a moment, indexed from nothing."""
    return make_cluster_facts(
        pods=moment.pods,
        nodes=moment.nodes,
        events=moment.events,
        quotas=moment.small.quotas,
        identities=moment.identities,
        agents=moment.agents,
        view=moment.view,
    )


class World:
    """The cluster. Each method changes one fact; `context` is what the rules are given then."""

    def __init__(self) -> None:
        self.now = NOW
        self._agents: dict[str, AgentFact] = {}
        self._nodes: dict[str, NodeFact | None] = {name: NODE_STATES[name]["well"] for name in NODES[:2]}
        self._pods: dict[str, PodFact | None] = {"p0": POD_STATES["p0"]["runs on n1"]}
        self._events: dict[str, tuple[EventFact, ...]] = {}
        self._sources, self._services, self._quotas = SOURCES["seen"], SERVICES["none"], QUOTAS["none"]
        self._deletions = DELETIONS["none"]
        self._builder = ViewBuilder(lambda _: ALICE)
        for name in NODES[:2]:
            self.agent(name, "answers")

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def part(self, name: str, part: str, variant: str) -> None:
        """Replace a part of a node's snapshot."""
        self._set_part(name, part, PARTS[name][part][variant])

    def fill(self, name: str, used: float) -> None:
        """Fill the disk of a node to `used` GiB of 100."""
        self._set_part(name, "disk", (disk(used),))

    def agent(self, name: str, state: str) -> None:
        """Make the agent of a node answer, fall silent or go."""
        known = self._agents.pop(name, None)
        if state == "gone":
            return
        if known is None:
            parts = {part: next(iter(variants.values())) for part, variants in PARTS[name].items()}
            snapshot = NodeSnapshot(node=name, at=self.now, agent_version="0", **parts)
            known = AgentFact(target=f"{name}:9835", node=name, snapshot=snapshot, received_at=self.now)
        since = (known.silent_since or self.now) if state == "silent" else None
        self._agents[name] = structs.replace(known, silent_since=since, error="timed out" if since else None)

    def node(self, name: str, state: str) -> None:
        self._nodes[name] = NODE_STATES[name][state]

    def pod(self, name: str, state: str) -> None:
        self._pods[name] = POD_STATES[name][state]

    def event(self, name: str, variant: str) -> None:
        self._events[name] = EVENTS[name][variant]

    def quotas(self, variant: str) -> None:
        self._quotas = QUOTAS[variant]

    def deletions(self, variant: str) -> None:
        self._deletions = DELETIONS[variant]

    def sources(self, variant: str) -> None:
        self._sources = SOURCES[variant]

    def services(self, variant: str) -> None:
        """Replace the services; they are probed now."""
        self._services = tuple(structs.replace(fact, at=self.now) for fact in SERVICES[variant])

    def context(self) -> RuleContext:
        facts = complete_facts(self.moment())
        return RuleContext(facts, self.now, self._services, self._deletions)

    def moment(self) -> Moment:
        """Everything known now."""
        self._poll()
        agents = tuple(self._agents[name] for name in sorted(self._agents))
        nodes = tuple(fact for fact in self._nodes.values() if fact is not None)
        pods = tuple(fact for fact in self._pods.values() if fact is not None)
        around = ClusterContext(sources=self._sources, pods_known=all(source.ok for source in self._sources))
        return Moment(
            view=self._builder.build(ViewInputs(agents, pods, nodes, around), self.now).view(),
            agents=agents,
            pods=pods,
            nodes=nodes,
            events=[each for found in self._events.values() for each in found],
            identities={each.uid: ALICE for each in pods},
            small=SmallFacts(sources=self._sources, quotas=self._quotas),
        )

    def _set_part(self, name: str, part: str, value: Any) -> None:
        agent = self._agents.get(name)
        if agent is not None and agent.snapshot is not None and agent.silent_since is None:
            snapshot = structs.replace(agent.snapshot, **{part: value})
            self._agents[name] = structs.replace(agent, snapshot=snapshot)

    def _poll(self) -> None:
        """Agents that answer have just done so, which changes nothing but the times."""
        for name, agent in self._agents.items():
            if agent.silent_since is None and agent.snapshot is not None:
                snapshot = structs.replace(agent.snapshot, at=self.now)
                self._agents[name] = structs.replace(agent, received_at=self.now, snapshot=snapshot)
