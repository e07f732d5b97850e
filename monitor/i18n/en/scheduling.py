"""English: why schedulers and queue controllers do not place a pod, in their own words."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "sched_device_claim": "The devices of its resource claims cannot be allocated: none is free that matches.",
    "sched_device_claim_advice": (
        "Release a device, or relax the claim's selectors: kubectl get resourceclaims -n {namespace}; "
        "kubectl get resourceslices"
    ),
    "sched_device_claim_missing": "A resource claim that it refers to, or its template, does not exist.",
    "sched_device_claim_missing_advice": (
        "Create it or correct its name: kubectl get resourceclaims,resourceclaimtemplates -n {namespace}"
    ),
    "sched_device_claim_driver": "The DRA driver does not allocate the devices of its resource claims.",
    "sched_device_claim_driver_advice": (
        "Look at the driver's controller and its log: kubectl get pods -A | grep -i dra; kubectl get "
        "resourceclaims -n {namespace}"
    ),
    "sched_device_class_missing": "The DeviceClass that its resource claim names does not exist.",
    "sched_device_class_missing_advice": "Install the DRA driver or correct the name: kubectl get deviceclasses",
    "sched_volume_limit": "The nodes already have as many volumes attached as they can.",
    "sched_volume_limit_advice": (
        "Spread pods with volumes over more nodes, or remove unused volumes: kubectl get volumeattachment"
    ),
    "sched_vgpu_unfit": "No node has GPUs that satisfy its shared GPU request, says the vGPU scheduler.",
    "sched_vgpu_unfit_advice": (
        "The event FilteringFailed names the reason per node: kubectl describe pod {pod} -n {namespace}. "
        "Request less GPU memory or fewer cores, or wait."
    ),
    "shares_requested": "It requests {needs:gpus}.",
    "sched_vgpu_card": "It wants other GPUs than the nodes have (model or UUID), says the vGPU scheduler.",
    "sched_vgpu_card_advice": (
        "Correct its annotations nvidia.com/use-gputype, nouse-gputype, use-gpuuuid or nouse-gpuuuid: "
        "kubectl get pod {pod} -n {namespace} -o yaml"
    ),
    "sched_vgpu_memory": "No GPU has enough unallocated memory for its shared GPU request.",
    "sched_vgpu_memory_advice": (
        "Request less GPU memory, or wait until other pods end. The scheduler counts allocated, not used, memory."
    ),
    "sched_vgpu_cores": "No GPU has enough unallocated compute for its shared GPU request.",
    "sched_vgpu_cores_advice": "Request a smaller share of the cores, or wait until other pods end.",
    "sched_vgpu_slots": "Every GPU already runs its maximum number of shared tasks.",
    "sched_vgpu_slots_advice": "Wait until pods end, or raise deviceSplitCount of the vGPU device plugin.",
    "sched_vgpu_unregistered": "The nodes are not registered with the vGPU scheduler.",
    "sched_vgpu_unregistered_advice": (
        "Start the vGPU device plugin on the nodes: kubectl get pods -A -o wide | grep -i hami; label them "
        "if it selects by label (gpu=on)."
    ),
    "sched_quota": "The scheduler's quota for it is used up.",
    "sched_quota_advice": "Wait until other jobs of the team end, request less, or have an admin raise the quota.",
    "sched_queue_full": "Its queue has no room for it: the queue's quota is in use.",
    "sched_queue_full_advice": (
        "Wait until jobs of the queue end, request less, or have an admin raise the queue's quota."
    ),
    "sched_cluster_full": (
        "The resources of the cluster are promised to other jobs, so its queue does not admit it yet."
    ),
    "sched_cluster_full_advice": "Wait, and delete pod groups of jobs that no longer exist: kubectl get podgroup -A",
    "sched_queue_too_small": "It requests more than its queue can ever give.",
    "sched_queue_too_small_advice": "Request less, use another queue, or have an admin raise the queue's quota.",
    "sched_queue_closed": "Its queue is closed or stopped: no new job starts there.",
    "sched_queue_closed_advice": (
        "Open the queue (Volcano: vcctl queue operate -a open; Kueue: stopPolicy None, and its flavors must "
        "exist), or use another one."
    ),
    "sched_queue_missing": "Its queue does not exist or does not accept it.",
    "sched_queue_missing_advice": (
        "Create the queue or correct its name in the job; the namespace must be allowed to use it."
    ),
    "sched_queue_topology": "The topology that it requires has no domain that exists and fits.",
    "sched_queue_topology_advice": (
        "Label or uncordon the nodes so that the level exists (kubectl get nodes -L LABEL), allow a wider "
        "level (podset-preferred-topology), or use a flavor with a topology. Waiting alone does not help."
    ),
    "sched_queue_uncovered": "Its queue does not cover a resource that it requests.",
    "sched_queue_uncovered_advice": (
        "Have an admin add the resource that the message names to coveredResources of the ClusterQueue, or "
        "remove it from the job."
    ),
    "sched_queued": "The scheduler {scheduler} has queued it and gives no further reason.",
    "sched_queued_advice": "Look at the free capacity of its queue in {scheduler}; the scheduler works.",
    "sched_gang_incomplete": "Its gang is incomplete: fewer pods exist than it needs to start.",
    "sched_gang_incomplete_advice": (
        "Find out why the missing pods are not created: kubectl get events -n {namespace}. Or lower the "
        "gang's minimum (minAvailable, minMember)."
    ),
    "sched_gang_waiting": "All pods of its gang exist, but they do not fit at the same time.",
    "sched_gang_waiting_advice": "Wait for resources, or submit the job with fewer workers: gpuwarden status",
    "sched_bad_node": "The nodes that it would have to use are bad, says the scheduler.",
    "sched_bad_node_advice": "Repair the node that the message names: kubectl describe node NODE",
    "sched_disk_pressure": "The disk of the nodes that it may use is full (disk pressure).",
    "sched_disk_pressure_advice": (
        "Free space on those nodes; the taint then goes away by itself: kubectl describe nodes | grep -A5 DiskPressure"
    ),
    "sched_memory_pressure": "The nodes that it may use run out of memory (memory pressure).",
    "sched_memory_pressure_advice": (
        "Find what uses the memory of those nodes; the taint then goes away by itself: kubectl top pods -A "
        "--sort-by=memory"
    ),
    "sched_not_ready": "The nodes that it may use are not ready or unreachable.",
    "sched_not_ready_advice": (
        "Repair them: kubectl get nodes; kubectl describe node NODE. The taint then goes away by itself."
    ),
    "sched_taint": "The nodes carry a taint that it does not tolerate: {name}.",
    "sched_taint_advice": "Add a toleration for {name} if the job may run there, or use other nodes.",
    "sched_cordoned": "The nodes that it may use are cordoned.",
    "sched_cordoned_advice": "Reopen them when their maintenance is done: kubectl uncordon NODE",
    "sched_selector": "No node matches its node selector or node affinity.",
    "sched_selector_advice": (
        "Correct nodeSelector or nodeAffinity of the job, or label nodes: kubectl get nodes --show-labels"
    ),
    "sched_gpus": "All {name} that it could use is taken, says the scheduler.",
    "sched_gpus_advice": "Wait, or submit the job with a smaller request. Who holds them: gpuwarden status",
    "sched_cpu": "No node has enough free CPU for it, says the scheduler.",
    "sched_cpu_advice": "Request less CPU, or wait until other pods end: kubectl describe nodes | grep -A8 Allocated",
    "sched_memory": "No node has enough free memory for it, says the scheduler.",
    "sched_memory_advice": (
        "Request less memory, or wait until other pods end: kubectl describe nodes | grep -A8 Allocated"
    ),
    "sched_ephemeral_storage": "No node has enough free local disk (ephemeral-storage) for it.",
    "sched_ephemeral_storage_advice": (
        "Request less ephemeral-storage, write to a volume instead, or add disk to the nodes."
    ),
    "sched_pods": "The nodes have reached their maximum number of pods.",
    "sched_pods_advice": "Remove finished pods, or raise maxPods of the kubelet.",
    "sched_resource": "No node offers enough of {name}.",
    "sched_resource_advice": (
        "Check the name {name} in the job. If it is right, start the device plugin that offers it, or wait "
        "until its shares are released."
    ),
    "gang_unsaid": "Its pod group waits although all of its pods exist; the scheduler does not say why.",
    "gang_unsaid_advice": (
        "Check first that its PVC {claim} exists and is bound: kubectl get pvc -n {namespace}. Then look at "
        "the scheduler's log."
    ),
    "pod_affinity_advice": "Relax the pod affinity or anti-affinity rules of the job, or add nodes.",
    "host_ports_advice": "Free the host port on a node, or remove hostPort (or hostNetwork) from the job.",
    "topology_spread_advice": (
        "Label the nodes with the topologyKey of the constraint, or relax it: whenUnsatisfiable: ScheduleAnyway."
    ),
}
