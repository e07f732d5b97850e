"""English: why no node takes a pod, and who came first."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "no_nodes": "No nodes of the cluster are known.",
    "no_nodes_advice": "Check that the cluster is readable: kubectl get nodes",
    "no_gpu_nodes": "No node offers {resource}.",
    "no_gpu_nodes_advice": (
        "Check the name {resource} in the job, and that the GPU device plugin is running on the nodes: kubectl get "
        "pods -A | grep device-plugin"
    ),
    "no_single_node_fits": (
        "No single node has {needs:free-gpus} (the most is {most} on {node}), but the cluster has {free} on "
        "{nodes:node|nodes}."
    ),
    "never_on_one_node": (
        "It requests {needs:gpus} on one node and can never run like this: the largest node ({node}) has "
        "{largest}. Free in total: {free}."
    ),
    "distribute": (
        "Submit it as distributed training: {workers} x {count} ({workers} workers with {each:gpus} each) would "
        "start now."
    ),
    "smaller_workers": (
        "Give each worker fewer GPUs and use more workers: {workers} x {each:gpus} instead of this one would start now."
    ),
    "distribute_later": (
        "Submit it as distributed training with at most {largest:gpus} per worker. It will still have to wait: "
        "not enough is free now."
    ),
    "or_wait_for_node": "Or wait until one node has {needs:free-gpus}.",
    "free_map": "Free by node: {nodes}.",
    "not_enough_gpus": (
        "Not enough is free: it needs {needs:gpus}, but only {free} of {total} are free on the {nodes:node|nodes} it "
        "may use."
    ),
    "top_holders": "Largest holders there: {holders}.",
    "gpus_leaving": "When these pods end, {count:gpus} will be free: {pods}.",
    "gpus_idle": "{count:GPU is|GPUs are} held but unused: {holders}.",
    "gpus_stuck": "{count:GPU is|GPUs are} blocked by pods or processes that no longer run: {nodes}.",
    "release_idle": "Ask the owners of the idle GPUs to stop their pods. Details: gpuwarden status",
    "release_stuck": "An admin can free the blocked GPUs. Details: gpuwarden status",
    "wait_or_ask_less": "Wait, or submit the job with a smaller request.",
    "room_cordoned": "Has room but accepts no new pods (cordoned): {nodes}. Reopen: kubectl uncordon NODE",
    "room_not_ready": "Has room but is down (not ready): {nodes}. {detail}",
    "room_tainted": "Has room but is reserved (taint {detail}): {nodes}.",
    "room_not_selected": "Has room but does not match this pod's requirements ({detail}): {nodes}.",
    "taint": (
        "Every node that could run it is reserved by a taint that it does not tolerate ({taint}): {nodes} ("
        "{count:node|nodes})."
    ),
    "taint_advice": (
        "If the job belongs on {nodes}, add a toleration for {taint}. If the nodes should be open to all: kubectl "
        "taint nodes NODE {taint}-"
    ),
    "taint_disk_advice": (
        "The disk of {nodes} is full ({taint}). Free space there (images, logs, old data): the taint then "
        "disappears. Do not tolerate it."
    ),
    "taint_trouble_advice": (
        "Kubernetes set {taint} because {nodes} is unhealthy: kubectl describe node NODE. Repair the node; do not "
        "tolerate the taint."
    ),
    "selector": (
        "It requires {wanted}, which none of the {count:sufficiently large node|sufficiently large nodes} matches."
    ),
    "selector_advice": (
        "Correct the nodeSelector or nodeAffinity of the job, or label a node: kubectl label node NODE KEY=VALUE "
        "(required: {wanted})"
    ),
    "label_values": "Nodes have {label} = {values}.",
    "label_absent": "None of these nodes has the label {label}.",
    "nodes_cordoned": "The only nodes that could run it accept no new pods (cordoned): {nodes}.",
    "uncordon_advice": "If the maintenance is over: kubectl uncordon NODE ({nodes})",
    "nodes_not_ready": "The only nodes that could run it are down (not ready): {nodes}.",
    "node_back_advice": "Bring {nodes} back: is the machine on, is the kubelet running? systemctl status kubelet",
    "also_tainted": "Reserved by a taint: {nodes} ({count:node|nodes}).",
    "also_not_selected": "Do not match its requirements: {nodes} ({count:node|nodes}).",
    "also_cordoned": "Cordoned: {nodes} ({count:node|nodes}).",
    "also_not_ready": "Not ready: {nodes} ({count:node|nodes}).",
    "short_of_cpu": "No node has enough free CPU: it needs {needs:core|cores}, the most is {free} on {node}.",
    "short_of_memory": "No node has enough free memory: it needs {needs:bytes}, the most is {free:bytes} on {node}.",
    "short_of_pods": "Every node that could run it has reached its pod limit ({node} for example).",
    "short_of_resource": "No node has enough {resource}: it needs {needs}, the most is {free} on {node}.",
    "short_of_advice": (
        "Request less {resource}, or free some: kubectl describe node {node} (section Allocated resources)"
    ),
    "gpus_wait_for_rest": "Because of that, {gpus:gpus} there ({nodes:node|nodes}) stay free.",
    "claim_missing": "The PVC {claim} that it uses does not exist in {namespace}.",
    "claim_missing_advice": "Create the PVC {claim}, or correct its name in the job: kubectl get pvc -n {namespace}",
    "claim_unbound": "The PVC {claim} that it uses is not bound to a volume yet.",
    "claim_unbound_advice": (
        "Check why: kubectl describe pvc {claim} -n {namespace}. Usual causes: the storage class does not exist, or "
        "the storage provisioner is down."
    ),
    "volume_elsewhere": "Its volume is not available on the nodes that have room (volume node affinity).",
    "volume_elsewhere_advice": (
        "Make room on the nodes that have the volume (kubectl describe pv), or use a shared volume (NAS)."
    ),
    "volume_unavailable": "Its volume is not available on the nodes that have room: {message}.",
    "volume_unavailable_advice": "Check the PVC and its volume: kubectl describe pvc. The scheduler says: {message}",
    "pending_fresh": "It should start any moment: {node} has room.",
    "pending_fresh_advice": "Check again in half a minute. If it is not on {node} by then, this explains why.",
    "no_scheduler": "{node} has room, but no scheduler has handled this pod. It requests the scheduler {scheduler}.",
    "no_scheduler_advice": (
        "Is {scheduler} running? kubectl get pods -A | grep scheduler. If there is no such scheduler, correct "
        "schedulerName in the job ({node} would fit)."
    ),
    "pod_affinity": "Its pod affinity or anti-affinity rules match no node that has room.",
    "host_ports": "It needs a host port that is taken on every node that has room.",
    "topology_spread": "Its topology spread constraints match no node that has room.",
    "scheduler_disagrees": "{node} seems to have room, but the scheduler rejects it; the scheduler decides.",
    "scheduler_disagrees_advice": "Follow the scheduler's message. In full: kubectl describe pod",
    "scheduler_says": "The scheduler says: {message}",
    "overtaken": (
        "A later pod was served first: {pod} of {user}, submitted {later:duration} after this one, runs with "
        "{gpus:gpus} on {node}."
    ),
    "overtaken_taint": "Why: it tolerates the taint {taint} of {node}, this pod does not.",
    "overtaken_queue": "Why: its queue {queue} has room; this pod's queue {own} does not.",
    "overtaken_held": "Why: the reason above blocks this pod but not the other one.",
    "overtaken_priority": "Why: its priority is higher ({priority}; this pod has {own}).",
    "overtaken_smaller": "Why: it requests only {gpus:gpus}, for which there is room; not for {needs:gpus}.",
    "overtaken_unknown": "The pods do not show why: the scheduler does not preserve the order of submission.",
    "overtaken_others": "{count:more pod|more pods} overtook it too.",
    "wait": "Wait.",
    "taint_trouble": (
        "Every node that could run it is unhealthy and closed by Kubernetes ({taint}): {nodes} ({count:node|nodes})."
    ),
    "short_of_pods_advice": "Delete unneeded pods on {node}, or raise maxPods of its kubelet.",
}
