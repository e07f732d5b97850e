"""Wording of schedulers and queue controllers. Fragments are lower case; the first match wins."""

from __future__ import annotations

from monitor.explain.error_chain.causes import SchedulingCause as C
from monitor.explain.error_chain.wording import wording

NO_SUCH_QUEUE = ("doesn't exist", "does not exist", "not found", "is terminating or missing")
SENTENCES = wording(
    # Karpenter lists what each pool of nodes lacks; names and requirements of the pools stand in between.
    (C.OTHER, ("incompatible with provisioner", "incompatible with nodepool", "limits for nodepool")),
    (C.OTHER, ("trigger scale-up",)),  # of the groups of an autoscaler, not of the nodes
    (C.VGPU_UNREGISTERED, ("is not a gpu node or the gpu memory count",)),  # Volcano
    # kube-scheduler: volumes
    (C.OTHER, ("readwriteoncepod",)),
    (
        C.CLAIM_UNBOUND,
        (
            "unbound immediate persistentvolumeclaim", "non-existent persistentvolume",
            "storageclass", "pvc is not bound", "non-existent pv",
            "bound to a lost", "unbound persistentvolume", "checkvolumebinding",
        ),
    ),
    (C.CLAIM_MISSING, ("persistentvolumeclaim",)),
    (
        C.VOLUME_ELSEWHERE,
        (
            "volume node affinity", "no available volume zone", "persistentvolume's node affinity", "volume zone",
            "novolumenodeconflict",
        ),
    ),
    (C.VOLUME_LIMIT, ("max volume count", "too many volumes", "volume limits", "maxvolumecount")),
    (C.VOLUME, ("persistent volumes to bind", "enough free storage", "volumebinding", "storage capacity")),
    (C.VOLUME, ("binding volumes",)),
    # dynamic resource allocation
    (
        C.DEVICE_CLAIM_DRIVER,
        ("waiting for resource driver", "waiting for driver", "resource driver to allocate", "driver to provide"),
    ),
    (
        C.DEVICE_CLAIM_MISSING,
        (
            "create the resourceclaim", "resourceclaimtemplate", "resourceclaim template", "resource claim template",
            "resourceclaim not found", "claim not found", "could not find v1.resourceclaim",
            "resourceclaim does not exist",
            "resourceclaim not created", "referenced resourceclaim",
        ),
    ),
    (
        C.DEVICE_CLAIM,
        (
            "cannot allocate all claims", "resourceclaim", "claim is not allocat", "allocate all devices",
            "claims could not be allocated", "dynamicresources", "resource claim ",
        ),
    ),
    # HAMi
    (C.VGPU_UNREGISTERED, ("node unregister",)),
    (C.VGPU_CARD, ("cardtypemismatch", "carduuidmismatch", "card type mismatch", "card uuid mismatch")),
    (C.VGPU_MEMORY, ("cardinsufficientmemory",)),
    (C.VGPU_CORES, ("cardinsufficientcore", "cardcomputeunitsexhausted")),
    (C.VGPU_SLOTS, ("cardtimeslicingexhausted",)),
    (
        C.VGPU_UNFIT,
        (
            "nodeunfitpod", "numanotfit", "modenotfit", "exclusivedeviceallocateconflict",
            "cardnotfoundcustomfilterrule",
            "nodeinsufficientdevice", "allocatedcardsinsufficientrequest", "cardmigtopologyinfeasible", "cardnothealth",
            "topologynotfit", "node scores do not meet", "nodes do not meet", "cardcordoned",
            "cardunhealthy", "cardqospolicymismatch", "cardappclassmismatch", "node not fit pod",
            "devicesharing error", "not initialized with device", "enough gpu cards", "gpu shared resource template",
            "multi-shared gpu",
        ),
    ),
    # quotas of schedulers
    (
        C.QUOTA,
        (
            "exceedsgpuquota", "because elasticquota", "total elasticquota", "resourcequotanotfit",
        ),
    ),
    # Kueue
    (
        C.QUEUE_TOPOLOGY,
        (
            "topology domains", "allows to fit only", "allow to fit any", "topologyawarescheduling", "requested level",
            "topology assignment", "no tas flavor", "for tas flavor", "topology level", "doesn't allow to fit",
            "topology-aware",
        ),
    ),
    (C.QUEUE_UNCOVERED, ("unavailable in clusterqueue", "not covered by", "coveredresources")),
    (
        C.QUEUE_CLOSED,
        (
            "is inactive", "is stopped", "is closed", "status is `closed`", "status is `closing`",
            "queue with state `open`",
            "stoppolicy", "is draining",
        ),
    ),
    (
        C.QUEUE_MISSING,
        (
            "doesn't match clusterqueue selector", "without placement rules",
            "failed to find queue", "queue does not exist", "queue not found", "unable to find job queue",
            "failed to place application", "no such queue", "cannot create queue", "queue is not a leaf",
            "can only submit", "placement rule", "submit access to queue",
        ),
    ),
    (C.QUEUE_TOO_SMALL, ("more than the queue's", "exceeds the queue's maximum", "larger than max queue allocation")),
    (
        C.QUEUE_FULL,
        (
            "queue resource quota", "resource quota insufficient",
            "insufficient unused quota", "does not fit in queue", "does not fit into",
            "borrowing limit",
            "insufficient quota", "in the remaining quota", "no longer fits after processing another",
            "queue is overused", "exceeds queue", "queue quota", "allowable limit", "user quota", "insufficient quotas",
            "quotaname",
            "is over quota", "overlimit: ", "overquota: ",  # KAI
        ),
    ),
    (C.CLUSTER_FULL, ("resource in cluster is overused", "cluster is overused", "overcommit")),
    (C.QUEUED, ("scheduled as a gang member",)),
    # gangs: Volcano, Koordinator, Coscheduling
    (
        C.GANG_INCOMPLETE,
        (
            "not collect enough", "gang has not init", "can't find gang", "cannot find enough sibling",
            "enough sibling pods",
            "not enough valid tasks", "not enough pods of task", "notenoughpods", "notenoughtasks", "gang to appear",
            "less than minmember", "less than minavailable", "pods number less", "to appear in scheduling queue",
        ),
    ),
    (
        C.GANG_WAITING,
        (
            "optimistic rejection", "gets rejected due to", "from a gang to be scheduled", "scheduling has timed out",
            "placeholder timed out", "placeholder timeout", "resourcereservationtimeout",
            "can possibly be assigned to",  # Volcano, of a pod that fits while others of its gang do not
        ),
    ),
    (C.QUEUED, ("is queued and waiting", "pending for the requested resources", "scheduled and waiting for")),
    (C.GATED, ("scheduling gates",)),
    # nodes
    (C.BAD_NODE, ("bad node",)),
    (C.DISK_PRESSURE, ("disk pressure", "out of disk", "diskpressure", "outofdisk")),
    (C.MEMORY_PRESSURE, ("memory pressure", "memorypressure")),
    (C.NOT_READY, ("were not ready", "node not ready", "nodenotready", "node is not ready")),
    (
        C.POD_AFFINITY,
        (
            "pod affinity", "anti-affinity", "affinity/anti-affinity", "pod's affinity",
            "pod's node affinity/anti", "interpodaffinity", "podaffinity", "podsantiaffinity",
        ),
    ),
    (C.PORTS, ("free ports", "host port", "node ports", "podfitshostports")),
    (C.SPREAD, ("topology spread",)),
    (C.CORDONED, ("were unschedulable", "node is unschedulable", "nodeunschedulable", "were cordoned")),
    (
        C.SELECTOR,
        (
            "node affinity", "node selector", "nodeselector", "node affinity/selector", "requested node name",
            "requested hostname",
        ),
    ),
    (C.PODS, ("too many pods", "pod number exceeded")),
    (C.GPUS, ("insufficient gpu device", "gpu devices", "insufficient numa scoped devices")),
    (C.CPU, ("insufficient amplified cpu", "not enough cpus available")),
)  # fmt: skip
# Who speaks of a gang, and what it says of one whose pods exist.
GANG = ("gang", "pod group", "podgroup", "coscheduling", "minavailable", "minmember")
GANG_WAITS = ("not ready", "unschedul", "timeout", "timed out", "schedulecycle not valid", "waiting for")
KAI_RESOURCES = {"gpu": C.GPUS, "gpus": C.GPUS, "cpu": C.CPU, "cpu cores": C.CPU, "memory": C.MEMORY}
CONDITION_TAINTS = wording(
    (C.DISK_PRESSURE, ("node.kubernetes.io/disk-pressure",)),
    (C.MEMORY_PRESSURE, ("node.kubernetes.io/memory-pressure",)),
    (C.CORDONED, ("node.kubernetes.io/unschedulable",)),
    (
        C.NOT_READY,
        (
            "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/network-unavailable",
            "node.kubernetes.io/pid-pressure", "node.cloudprovider.kubernetes.io/uninitialized", "agent-not-ready",
            "node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/shutdown",
        ),
    ),
)  # fmt: skip

# Reasons of a plugin that no other node would remove.
DECISIVE = frozenset(
    {
        C.DEVICE_CLAIM, C.DEVICE_CLAIM_MISSING, C.DEVICE_CLAIM_DRIVER, C.DEVICE_CLASS_MISSING, C.CLAIM_MISSING,
        C.CLAIM_UNBOUND, C.VGPU_UNFIT, C.QUOTA, C.QUEUE_FULL, C.QUEUE_TOO_SMALL, C.QUEUE_CLOSED, C.QUEUE_MISSING,
        C.QUEUE_TOPOLOGY, C.QUEUE_UNCOVERED, C.CLUSTER_FULL, C.BAD_NODE, C.GATED,
    }
)  # fmt: skip
# Constraints of the pod, which exclude nodes that have room.
CONSTRAINTS = frozenset(
    {
        C.VGPU_CARD, C.VGPU_MEMORY, C.VGPU_CORES, C.VGPU_SLOTS, C.VGPU_UNREGISTERED, C.PORTS, C.POD_AFFINITY, C.SPREAD,
        C.VOLUME_ELSEWHERE, C.VOLUME_LIMIT, C.VOLUME, C.GANG_INCOMPLETE, C.GANG_WAITING,
    }
)  # fmt: skip
