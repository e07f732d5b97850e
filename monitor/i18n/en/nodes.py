"""English: why no node takes a pod, and who came first."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "no_nodes": "No node of the cluster is known.",
    "no_nodes_advice": "See whether the cluster can be read: kubectl get nodes",
    "no_gpu_nodes": "No node offers {resource}.",
    "no_gpu_nodes_advice": (
        "Check the name {resource} in the job, and whether the GPU device plugin runs on the nodes: kubectl get pods "
        "-A | grep device-plugin"
    ),
    "no_single_node_fits": (
        "No single node has {needs:free GPU|free GPUs} (the most is {most} on {node}), but the cluster has {free} on "
        "{nodes:node|nodes}."
    ),
    "never_on_one_node": (
        "It asks for {needs:GPU|GPUs} on one node and can never run like this: the largest node ({node}) has "
        "{largest}. Free right now in all: {free}."
    ),
    "distribute": (
        "Submit it as distributed training: {workers} x {each} ({workers} workers with {each:GPU|GPUs} each) would "
        "start now."
    ),
    "smaller_workers": (
        "Give each worker fewer GPUs and use more workers: {workers} x {each:GPU|GPUs} instead of this one would "
        "start now."
    ),
    "distribute_later": (
        "Submit it as distributed training with at most {largest:GPU|GPUs} per worker. It will still have to wait: "
        "not enough are free now."
    ),
    "or_wait_for_node": "Or wait until one node has {needs:free GPU|free GPUs}.",
    "free_map": "Free GPUs by node: {nodes}.",
    "not_enough_gpus": (
        "Not enough free GPUs: it needs {needs}, and {free} of {total} are free on the {nodes:node|nodes} it may use."
    ),
    "top_holders": "Most GPUs there are held by: {holders}.",
    "gpus_leaving": "{count:GPU comes|GPUs come} back when these pods have ended: {pods}.",
    "gpus_idle": "{count:GPU is|GPUs are} held and not used: {holders}.",
    "gpus_stuck": "{count:GPU is|GPUs are} blocked by something that no longer runs: {nodes}.",
    "release_idle": "Ask the owners of the idle GPUs to stop their pods. Details: gpuwarden status",
    "release_stuck": "An admin can free the blocked GPUs. Details: gpuwarden status",
    "wait_or_ask_less": "Wait, or submit the job with fewer GPUs.",
    "room_cordoned": "Has room but takes no new pods (cordoned): {nodes}. Reopen: kubectl uncordon NODE",
    "room_not_ready": "Has room but is down (not ready): {nodes}. {detail}",
    "room_tainted": "Has room but is reserved (taint {detail}): {nodes}.",
    "room_not_selected": "Has room but this pod does not want it ({detail}): {nodes}.",
    "taint": (
        "All that could take it is reserved by a taint which it does not tolerate ({taint}): {nodes} "
        "({count:node|nodes})."
    ),
    "taint_advice": (
        "If the job belongs on {nodes}, add a toleration for {taint}. If the nodes should be open to all: kubectl "
        "taint nodes NODE {taint}-"
    ),
    "taint_disk_advice": (
        "The disk of {nodes} is full ({taint}). Free space there (images, logs, old data): the taint goes by itself. "
        "Do not tolerate it."
    ),
    "taint_trouble_advice": (
        "Kubernetes set {taint} because {nodes} is in trouble: kubectl describe node NODE. Heal the node; do not "
        "tolerate the taint."
    ),
    "selector": (
        "It wants {wanted}, and none of the nodes that are large enough has that ({count:node|nodes} looked at)."
    ),
    "selector_advice": (
        "Correct nodeSelector or nodeAffinity of the job, or label a node: kubectl label node NODE KEY=VALUE "
        "(wanted: {wanted})"
    ),
    "label_values": "Nodes have {label} = {values}.",
    "label_absent": "No such node has the label {label} at all.",
    "nodes_cordoned": "The only nodes that could take it accept no new pods (cordoned): {nodes}.",
    "uncordon_advice": "If the maintenance is over: kubectl uncordon NODE ({nodes})",
    "nodes_not_ready": "The only nodes that could take it are down (not ready): {nodes}.",
    "node_back_advice": "Bring {nodes} back: is the machine on, does kubelet run? systemctl status kubelet",
    "also_tainted": "Reserved by a taint: {nodes} ({count:node|nodes}).",
    "also_not_selected": "Not what it wants: {nodes} ({count:node|nodes}).",
    "also_cordoned": "Cordoned: {nodes} ({count:node|nodes}).",
    "also_not_ready": "Not ready: {nodes} ({count:node|nodes}).",
    "short_of_cpu": "No node has enough free CPU: it needs {needs:core|cores}, the most is {free} on {node}.",
    "short_of_memory": "No node has enough free memory: it needs {needs:bytes}, the most is {free:bytes} on {node}.",
    "short_of_pods": "Every node that could take it has as many pods as it may have ({node} for one).",
    "short_of_resource": "No node has enough {resource}: it needs {needs}, the most is {free} on {node}.",
    "short_of_advice": (
        "Ask for less {resource}, or free some: kubectl describe node {node} (section Allocated resources)"
    ),
    "gpus_wait_for_rest": "{gpus:GPU lies|GPUs lie} free there ({nodes:node|nodes}) for want of it.",
    "claim_missing": "The volume claim {claim} that it uses does not exist in {namespace}.",
    "claim_missing_advice": "Create the claim {claim}, or correct its name in the job: kubectl get pvc -n {namespace}",
    "claim_unbound": "The volume claim {claim} that it uses has no volume yet.",
    "claim_unbound_advice": (
        "See why: kubectl describe pvc {claim} -n {namespace}. Usual: the storage class does not exist, or the "
        "storage provisioner is down."
    ),
    "volume_elsewhere": "Its volume exists only on other nodes than those that have room (volume node affinity).",
    "volume_elsewhere_advice": (
        "Free room on the nodes that have the volume (kubectl describe pv), or use a shared volume (NAS)."
    ),
    "volume_unavailable": "Its volume cannot be had on the nodes that have room: {message}.",
    "volume_unavailable_advice": "See the claim and its volume: kubectl describe pvc. The scheduler says: {message}",
    "pending_fresh": "It should start any moment: {node} has room.",
    "pending_fresh_advice": "Ask again in half a minute. If it does not go to {node} by then, this says why.",
    "no_scheduler": "{node} has room, but no scheduler has looked at this pod. It asks for the scheduler {scheduler}.",
    "no_scheduler_advice": (
        "Does {scheduler} run? kubectl get pods -A | grep scheduler. If there is no such scheduler, correct "
        "schedulerName in the job ({node} would fit)."
    ),
    "pod_affinity": "It wants to be near, or far from, other pods, and no node with room satisfies that.",
    "host_ports": "It wants a port of the node that is taken wherever there is room.",
    "topology_spread": "It has to be spread over nodes or zones, and no node with room satisfies that.",
    "scheduler_disagrees": "By our sums {node} has room, but the scheduler refuses, and it decides.",
    "scheduler_disagrees_advice": "Go by what the scheduler says. All it said: kubectl describe pod",
    "scheduler_says": "The scheduler says: {message}",
    "overtaken": (
        "A later pod got GPUs first: {pod} of {user}, submitted {later:duration} after this one, runs with "
        "{gpus:GPU|GPUs} on {node}."
    ),
    "overtaken_taint": "Why: it tolerates the taint {taint} of {node}, this pod does not.",
    "overtaken_queue": "Why: its queue {queue} has room, this pod's queue {own} has not.",
    "overtaken_held": "Why: the reason above holds this pod back, not the other one.",
    "overtaken_priority": "Why: its priority is higher ({priority}, this pod has {own}).",
    "overtaken_smaller": "Why: it asks for {gpus:GPU|GPUs} only, which fitted; {needs} did not.",
    "overtaken_unknown": "Why is not to be seen from the pods: the scheduler does not keep the order of submission.",
    "overtaken_others": "{count:more pod|more pods} did so too.",
    "wait": "Wait.",
    "taint_trouble": (
        "All that could take it is closed by Kubernetes because it is in trouble ({taint}): {nodes} "
        "({count:node|nodes})."
    ),
    "short_of_pods_advice": "Delete pods that are not needed on {node}, or raise maxPods of its kubelet.",
}
