"""English: text of the rules about pods, images and queues."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # pod-pending
    "rule.pod-pending": "Pod waiting for a node",
    "doc.pod-pending": "A job's pods have been waiting for a node for too long; names the reason.",
    "doc.pod-pending.severity": "warning",
    "doc.pod-pending.incident": "Why is my job not scheduled? Are there not enough GPUs?",
    "doc.pod-pending.limit.waiting": "How long a pod may wait for a node.",
    "pod-pending.no-single-node-fits": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "no single node has {gpus:free-gpus}."
    ),
    "pod-pending.not-enough-gpus": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "not enough is free ({gpus:gpus} needed)."
    ),
    "pod-pending.quota": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "the quota of queue {queue} is used up."
    ),
    "pod-pending.queue-closed": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "queue {queue} is closed or missing."
    ),
    "pod-pending.gang-incomplete": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "the gang must start together but is incomplete or does not fit."
    ),
    "pod-pending.taint": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "taints keep it off the suitable nodes."
    ),
    "pod-pending.selector": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: no node has the requested labels."
    ),
    "pod-pending.volume": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: its volume is not ready."
    ),
    "pod-pending.vgpu": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "no GPU satisfies its shared GPU request."
    ),
    "pod-pending.device-claim": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "the devices of its resource claims are not allocated."
    ),
    "pod-pending.topology": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: "
        "no topology domain exists that fits."
    ),
    "pod-pending.priority": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: other jobs have higher priority."
    ),
    "pod-pending.overtaken": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: a later job was served first."
    ),
    "pod-pending.unschedulable-other": (
        "Job {job} ({user}) has had {count:pod|pods} waiting for {seconds:duration}: no node accepts it."
    ),
    "pod-pending.advice": "Full and current explanation: gpuwarden why -n {namespace} {pod}",
    # pod-stuck-creating
    "rule.pod-stuck-creating": "Pod stuck in creation",
    "doc.pod-stuck-creating": (
        "A pod is bound to a node but its containers are not created, for a reason other than its image. Pods that "
        "cannot mount from one storage server are explained by one finding about the server."
    ),
    "doc.pod-stuck-creating.severity": "warning",
    "doc.pod-stuck-creating.incident": "Mounts failed, and jobs hung in creation.",
    "doc.pod-stuck-creating.limit.creating": "How long a pod may take from one step to the next.",
    "pod-stuck-creating.mount-failed": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: mounting a volume "
        "failed."
    ),
    "pod-stuck-creating.mount-hung": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a volume does not "
        "respond."
    ),
    "pod-stuck-creating.sandbox": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: the node does not "
        "create its sandbox, or reports no reason."
    ),
    "pod-stuck-creating.config-missing": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a ConfigMap, Secret "
        "or PVC that it references is missing."
    ),
    "pod-stuck-creating.device-missing": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a device that it "
        "needs is missing."
    ),
    "pod-stuck-creating.hung-path": "{path} on {node} does not respond.",
    "pod-stuck-creating.server": (
        "{count:pod|pods} on {nodes:node|nodes} cannot mount volumes from storage server {server}."
    ),
    "pod-stuck-creating.pods": "Affected: {pods}",
    "pod-stuck-creating.advice": (
        "Details: kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}"
    ),
    # pod-start-failed
    "rule.pod-start-failed": "Pod cannot start",
    "doc.pod-start-failed": (
        "A container cannot be created or started, or keeps crashing. Pods that share a fault of their node's GPU "
        "driver or container toolkit are explained by one finding about the node."
    ),
    "doc.pod-start-failed.severity": "warning",
    "doc.pod-start-failed.incident": "The start file was not found, or was not executable.",
    "doc.pod-start-failed.limit.steady": "How long a container must run after a crash to count as healthy.",
    "doc.pod-start-failed.limit.failed_for": "How long a failed pod is reported.",
    "pod-start-failed.file-not-found": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: a command, file or module is missing ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.not-executable": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: its program is not executable ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.permission": (
        "Container {container} of pod {pod} ({user}) on {node} keeps failing: permission to a file is denied ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.out-of-memory": (
        "Container {container} of pod {pod} ({user}) on {node} ran out of memory ({restarts:restart|restarts})."
    ),
    "pod-start-failed.bus-error": (
        "Container {container} of pod {pod} ({user}) on {node} crashes with a memory access error ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.config": (
        "Container {container} of pod {pod} ({user}) on {node} does not start or keeps failing with its current "
        "configuration ({restarts:restart|restarts})."
    ),
    "pod-start-failed.gpu-driver": (
        "Container {container} of pod {pod} ({user}) on {node} cannot use its GPUs: the GPU driver or "
        "the container toolkit fails ({restarts:restart|restarts})."
    ),
    "pod-start-failed.node-trouble": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: the node cannot set it up "
        "({restarts:restart|restarts})."
    ),
    "pod-start-failed.security-profile": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: its security profile cannot "
        "be applied ({restarts:restart|restarts})."
    ),
    "pod-start-failed.volume": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: one of its mounts fails "
        "({restarts:restart|restarts})."
    ),
    "pod-start-failed.program": (
        "Container {container} of pod {pod} ({user}) on {node} keeps failing: its program exits with an "
        "error ({restarts:restart|restarts})."
    ),
    "pod-start-failed.unknown": (
        "Container {container} of pod {pod} ({user}) on {node} does not start; the cause is unknown "
        "({restarts:restart|restarts})."
    ),
    "pod-start-failed.node": (
        "{count:pod|pods} on {node} cannot use their GPUs: the node's GPU driver or container toolkit fails."
    ),
    "pod-start-failed.pods": "It affects {pods}.",
    "pod-start-failed.refused": "The kubelet of {node} refused pod {pod} ({user}).",
    "pod-start-failed.evicted": "The kubelet of {node} evicted pod {pod} ({user}).",
    # pod-stuck-terminating
    "rule.pod-stuck-terminating": "Pod stuck in deletion",
    "doc.pod-stuck-terminating": "A deleted pod still exists after its grace period.",
    "doc.pod-stuck-terminating.severity": "warning",
    "doc.pod-stuck-terminating.incident": "Deleted jobs hung and had to be removed by hand.",
    "doc.pod-stuck-terminating.limit.overdue": "How long beyond its grace period a pod may take.",
    "pod-stuck-terminating.finalizer": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: a finalizer "
        "keeps it."
    ),
    "pod-stuck-terminating.node-down": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: its node does "
        "not respond."
    ),
    "pod-stuck-terminating.volume-busy": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: one of its "
        "volumes cannot be unmounted."
    ),
    "pod-stuck-terminating.d-state": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: one of its "
        "processes cannot be killed."
    ),
    "pod-stuck-terminating.runtime-hung": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: the container "
        "runtime does not stop it."
    ),
    "pod-stuck-terminating.advice": (
        "Details: kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}"
    ),
    # pod-silent
    "rule.pod-silent": "Job without log output",
    "doc.pod-silent": "A running container holds GPUs, but its log is empty or no longer grows.",
    "doc.pod-silent.severity": "warning",
    "doc.pod-silent.incident": "Training jobs that printed nothing.",
    "doc.pod-silent.limit.empty": "How long a log may stay empty after the start.",
    "doc.pod-silent.limit.stopped": "How long a log may stay unchanged.",
    "pod-silent.never-logged": (
        "Container {container} of pod {pod} ({user}) on {node} holds {gpus:gpus} and has not logged a line in "
        "the {seconds:duration} since its start."
    ),
    "pod-silent.never-logged.advice": (
        "Ask {user} whether it works. Python buffers its output: set PYTHONUNBUFFERED=1. Does it log to a file? "
        "kubectl logs {pod} -n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.stopped-logging": (
        "Container {container} of pod {pod} ({user}) on {node} holds {gpus:gpus} and has logged nothing for "
        "{seconds:duration}."
    ),
    "pod-silent.stopped-logging.advice": (
        "Ask {user} whether it hangs (NCCL, a data loader, a full disk): kubectl logs {pod} -n {namespace} -c "
        "{container} --tail 20"
    ),
    "pod-silent.log-unreadable": (
        "Container {container} of pod {pod} ({user}) on {node} holds {gpus:gpus}, and its log is unreadable "
        "{seconds:duration} after its start."
    ),
    "pod-silent.log-unreadable.advice": (
        "On {node}, check that the log file exists and that its disk works: ls -l /var/log/pods; kubectl logs {pod} "
        "-n {namespace} -c {container} --tail 20"
    ),
    # quota-exhausted
    "rule.quota-exhausted": "Quota used up",
    "doc.quota-exhausted": "A namespace or queue uses its full GPU quota while more jobs wait in it.",
    "doc.quota-exhausted.severity": "warning",
    "doc.quota-exhausted.incident": "New jobs queued because the group's quota was used up.",
    "doc.quota-exhausted.limit.refused": "How long a refused job counts as waiting.",
    "quota-exhausted.namespace": (
        "Namespace {name} uses {used} of the {limit:gpus} that quota {quota} allows, and more jobs are waiting."
    ),
    "quota-exhausted.namespace.advice": (
        "Stop unneeded jobs of {name}, or raise the quota: kubectl edit resourcequota {quota} -n {name}"
    ),
    "quota-exhausted.queue": "Queue {name} uses {used} of its limit of {limit:gpus}, and more jobs are waiting.",
    "quota-exhausted.queue.advice": (
        "Stop unneeded jobs of queue {name}, or raise its limit (Volcano: spec.capability; Kueue: nominalQuota)."
    ),
    "quota-exhausted.waiting": "{count:job is|jobs are} waiting for {needs:gpus}: {jobs}.",
    "quota-exhausted.holders": "Largest holders: {holders}.",
}
