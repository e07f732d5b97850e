"""English: text of the rules about GPUs that are held."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # shared
    "card-memory": "{bytes:bytes} of the GPU's memory is in use.",
    "card-owner": "It belongs to {user} (job {job}).",
    "gpu-cost": "Cost so far: {cost} ({hourly} per hour).",
    "gpu-cost.window": "Cost of these GPUs in the last {window:duration}: {cost}.",
    # gpu-zombie
    "rule.gpu-zombie": "GPU held by a finished pod",
    "doc.gpu-zombie": (
        "A pod that has finished, was deleted, or should have terminated still holds a GPU, so other jobs cannot use "
        "it."
    ),
    "doc.gpu-zombie.severity": "warning",
    "doc.gpu-zombie.incident": (
        "Every few days dead jobs kept GPUs allocated, and an administrator had to find them by hand."
    ),
    "doc.gpu-zombie.limit.finished_after": "How long a finished or deleted pod may hold a GPU.",
    "doc.gpu-zombie.limit.terminating_after": "How long a terminating pod may hold a GPU after its grace period.",
    "gpu-zombie.pod-finished": "Pod {pod} finished {seconds:duration} ago but still holds GPU {gpu} on {node}.",
    "gpu-zombie.pod-deleted": "Pod {pod} was deleted {seconds:duration} ago but still holds GPU {gpu} on {node}.",
    "gpu-zombie.pod-terminating": (
        "Pod {pod} should have terminated {seconds:duration} ago but still holds GPU {gpu} on {node}."
    ),
    "gpu-zombie.process": "Its process {pid} is still on the GPU.",
    "gpu-zombie.allocation": "No process of {pod} is left on GPU {gpu}, but {node} keeps the GPU allocated to it.",
    "gpu-zombie.advice": (
        "Release the GPU on its page, or: gpuwarden cleanup release {node} {gpu}. If that is refused, find "
        "out on {node} why process {pid} does not exit: ps -o pid,stat,wchan:32,cmd -p {pid}"
    ),
    "gpu-zombie.allocation.advice": "Check what keeps the pod: kubectl describe pod {pod} -n {namespace}",
    # gpu-idle
    "rule.gpu-idle": "GPU held but idle",
    "doc.gpu-idle": (
        "A live pod holds GPUs without using them, or uses only some of them. Not reported within `warm_up` of the "
        "pod's start, nor while the GPU draws power."
    ),
    "doc.gpu-idle.severity": "warning; critical after `critical_after`; info for idle hours of inference services",
    "doc.gpu-idle.incident": "Development environments kept GPUs that were idle for hours.",
    "doc.gpu-idle.limit.warning_after": "How long a job may leave a GPU idle.",
    "doc.gpu-idle.limit.critical_after": "Idle time after which the severity is critical.",
    "doc.gpu-idle.limit.notebook_warning_after": "`warning_after` for notebooks.",
    "doc.gpu-idle.limit.notebook_critical_after": "`critical_after` for notebooks.",
    "doc.gpu-idle.limit.warm_up": "How long after its start a pod is ignored.",
    "doc.gpu-idle.limit.power_times": "A GPU that draws this multiple of its minimum power counts as busy.",
    "doc.gpu-idle.limit.power_share": (
        "It must also draw at least this share of the range between its minimum power and its power limit."
    ),
    "doc.gpu-idle.limit.inference_days": (
        "Days in a row on which an inference service is idle at the same hours; at most 7."
    ),
    "doc.gpu-idle.limit.inference_hours": "Number of hours in a row from which its idleness is reported.",
    "doc.gpu-idle.limit.timezone": "Time zone of these hours; by default that of the daemon.",
    "gpu-idle.idle-notebook": "Notebook {namespace}/{pod} has not used GPU {gpu} on {node} for {seconds:duration}.",
    "gpu-idle.idle-notebook.advice": (
        "Ask the owner to stop notebook {namespace}/{pod}, or release the GPU: gpuwarden cleanup release "
        "{node} {gpu}. Files on its volumes are kept."
    ),
    "gpu-idle.idle-job": "Pod {namespace}/{pod} has not used GPU {gpu} on {node} for {seconds:duration}.",
    "gpu-idle.idle-job.advice": (
        "See what it is doing: kubectl logs {pod} -n {namespace} --tail=50. If it is done, release the GPU: "
        "gpuwarden cleanup release {node} {gpu}"
    ),
    "gpu-idle.hung-job": (
        "Pod {namespace}/{pod} seems to hang: GPU {gpu} on {node} has been idle for {seconds:duration}, and its log "
        "has stopped too."
    ),
    "gpu-idle.hung-job.advice": (
        "Find out where it hangs: kubectl exec {pod} -n {namespace} -- py-spy dump --pid 1 (often a collective that "
        "waits for a lost worker). Then restart the job from its last checkpoint."
    ),
    "gpu-idle.waiting-for-data": (
        "Pod {namespace}/{pod} is waiting for data: GPU {gpu} on {node} has been idle for {seconds:duration}."
    ),
    "gpu-idle.waiting-for-data.advice": (
        "Check the storage it reads from: run iostat -x 5 and nfsiostat 5 on {node}, and check that {namespace}/"
        "{pod} can read its dataset."
    ),
    "gpu-idle.partially-idle": (
        "Job {job} ({namespace}) uses only some of its GPUs: {idle} of {gpus} have been idle for {idle_for:duration}."
    ),
    "gpu-idle.partially-idle.advice": (
        "Ask the owner to request fewer than {gpus:GPU|GPUs}, or to use all of them (torchrun --nproc_per_node; "
        "check CUDA_VISIBLE_DEVICES in {namespace}/{pod})."
    ),
    "gpu-idle.idle-inference": (
        "Inference service {namespace}/{job} left its {gpus:GPU|GPUs} idle at {hours} on each of the last "
        "{days:day|days}."
    ),
    "gpu-idle.idle-inference.advice": (
        "Nothing is released. If the service needs fewer replicas at these hours, let an autoscaler or a schedule "
        "reduce them, "
        "for example a cron trigger of KEDA, and lend the GPUs to jobs."
    ),
    "gpu-idle.unused-inference": (
        "Inference service {namespace}/{job} has not used its {gpus:GPU|GPUs} in the last {days:day|days}."
    ),
    "gpu-idle.unused-inference.advice": (
        "Ask its owner whether anyone still needs it; scale it to 0 if not. Nothing is released by itself."
    ),
    "gpu-idle.cards": "Idle GPUs (node:GPU): {cards}.",
    "gpu-idle.log-stopped": "Its last log line is {log_age:duration} old, and its process is still on the GPU.",
    "gpu-idle.process-waits": "Its process {pid} ({process}) is waiting for I/O (state D).",
    "gpu-idle.node-waits": "On average, {cores:core|cores} of this node are waiting for I/O.",
    # gpu-orphan
    "rule.gpu-orphan": "GPU used outside Kubernetes",
    "doc.gpu-orphan": (
        "A process that belongs to no pod uses a GPU, so its use is not accounted for. It may be an intruder."
    ),
    "doc.gpu-orphan.severity": "warning",
    "doc.gpu-orphan.incident": "A break-in; workloads started outside the platform.",
    "doc.gpu-orphan.limit.allowed": "Allowed process names, as shell patterns (at most 15 characters).",
    "gpu-orphan.host-process": (
        "Process {pid} ({process}), which belongs to no pod, has been using GPU {gpu} on {node} for {seconds:duration}."
    ),
    "gpu-orphan.other-container": (
        "Container {container} has been using GPU {gpu} on {node} outside Kubernetes for {seconds:duration}: process "
        "{pid} ({process})."
    ),
    "gpu-orphan.unknown-owner": (
        "Process {pid}, whose owner is unknown, has been using GPU {gpu} on {node} for {seconds:duration}."
    ),
    "gpu-orphan.uid": "It runs as user id {uid}.",
    "gpu-orphan.others": "{count:other process|other processes} outside any pod on the same GPU: {pids}.",
    "gpu-orphan.host-process.advice": (
        "On {node}: ps -o pid,user,lstart,cmd -p {pid}. If the process is unknown, treat it as an intruder "
        "and keep a copy of /proc/{pid}/exe. Then release the GPU: gpuwarden cleanup release {node} {gpu}"
    ),
    "gpu-orphan.other-container.advice": (
        "On {node}, docker inspect {container} (or crictl inspect {container}) shows who started it. Workloads must "
        "go through Kubernetes: docker stop {container}"
    ),
    "gpu-orphan.unknown-owner.advice": (
        "On {node}: cat /proc/{pid}/cgroup; ls -l /proc/{pid}/exe. The agent needs hostPID to see it."
    ),
    # gpu-ghost
    "rule.gpu-ghost": "GPU busy without a process",
    "doc.gpu-ghost": "A GPU's memory is allocated, or the GPU reports utilisation, although no process is on it.",
    "doc.gpu-ghost.severity": "warning",
    "doc.gpu-ghost.incident": "Unused GPUs were shown as busy.",
    "gpu-ghost.memory-leak": (
        "{bytes:bytes} of memory on GPU {gpu} of {node} has been allocated for {seconds:duration} although no "
        "process is on it."
    ),
    "gpu-ghost.latched-utilisation": (
        "GPU {gpu} on {node} has reported {ratio:percent} utilisation for {seconds:duration} although no process is "
        "on it."
    ),
    "gpu-ghost.memory-leak.advice": (
        "On {node}, fuser -v /dev/nvidia{gpu} shows who has it open. If it lists no process: drain the GPU, then "
        "nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-ghost.latched-utilisation.advice": (
        "The counter is stuck. On {node}: nvidia-smi -pm 1; if that does not help: nvidia-smi --gpu-reset -i {gpu}"
    ),
    # gpu-wedged
    "rule.gpu-wedged": "GPU process stuck",
    "doc.gpu-wedged": (
        "A process holds a GPU and can neither work nor exit: it is stuck in the kernel, dead but not reaped, or "
        "gone from the process table."
    ),
    "doc.gpu-wedged.severity": "warning",
    "doc.gpu-wedged.incident": "Hung jobs held GPUs until the node was rebooted.",
    "gpu-wedged.d-state": (
        "Process {pid} ({process}) on GPU {gpu} of {node} has been stuck in the kernel (state D) for "
        "{seconds:duration}."
    ),
    "gpu-wedged.zombie-process": (
        "Process {pid} ({process}) on GPU {gpu} of {node} is dead but has not been reaped (state Z) for "
        "{seconds:duration}."
    ),
    "gpu-wedged.vanished": (
        "GPU {gpu} on {node} has been held for {seconds:duration} by process {pid} ({process}), which no longer exists."
    ),
    "gpu-wedged.d-state.advice": (
        "On {node}: cat /proc/{pid}/stack. If it waits for a mount, repair the mount; if it waits for the driver, "
        "stop new jobs (kubectl cordon {node}), and reboot {node} when its other jobs have ended."
    ),
    "gpu-wedged.zombie-process.advice": (
        "On {node}: its parent (ps -o ppid= -p {pid}) must reap it: restart the container. If it has threads in "
        "state D, reboot {node}."
    ),
    "gpu-wedged.vanished.advice": (
        "On {node}: fuser -v /dev/nvidia{gpu}. If it lists no process, drain the GPU, then nvidia-smi --gpu-reset -i "
        "{gpu}"
    ),
    # gpu-phantom
    "rule.gpu-phantom": "GPU allocated to a pod that is gone",
    "doc.gpu-phantom": "The kubelet or a ResourceClaim counts a GPU as allocated although its pod is gone.",
    "doc.gpu-phantom.severity": "warning",
    "doc.gpu-phantom.incident": "Unused GPUs were counted as allocated.",
    "doc.gpu-phantom.limit.refused_within": "How recently a pod must have been refused to count as evidence.",
    "gpu-phantom.stale-allocation": (
        "For {seconds:duration}, pod {pod}, which no longer exists, has kept GPU {gpu} of {node} allocated."
    ),
    "gpu-phantom.terminal-pod": (
        "For {seconds:duration}, {node} has counted GPU {gpu} as used by pod {pod}, which has finished, and has "
        "refused new pods."
    ),
    "gpu-phantom.refused": "It refused pod {pod} because of missing GPUs.",
    "gpu-phantom.claim.advice": (
        "A ResourceClaim holds the GPU; the controller manager releases claims of deleted pods. Does it run? kubectl "
        "-n kube-system get pods -l component=kube-controller-manager"
    ),
    "gpu-phantom.advice": (
        "Restart the kubelet on {node}: systemctl restart kubelet. Pods keep running. If it still "
        "counts the GPU as used: kubectl cordon {node}, and reboot the node when its jobs have ended."
    ),
}
