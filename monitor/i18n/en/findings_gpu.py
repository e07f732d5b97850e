"""English: text of the rules about GPUs that are held."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # shared
    "card-memory": "{bytes:bytes} of the card's memory is in use.",
    "card-owner": "It belongs to {user} (job {job}).",
    # gpu-zombie
    "rule.gpu-zombie": "GPU held by a finished pod",
    "doc.gpu-zombie": (
        "A card is still held by a pod that has finished, was deleted, or should long have ended: nobody else gets it."
    ),
    "doc.gpu-zombie.severity": "warning",
    "doc.gpu-zombie.incident": "Every few days dead jobs held cards, and somebody had to find them by hand.",
    "doc.gpu-zombie.limit.finished_after": "How long a pod that finished or was deleted may hold a card.",
    "doc.gpu-zombie.limit.terminating_after": "How long a pod that is being deleted may hold a card beyond its time.",
    "gpu-zombie.pod-finished": (
        "GPU {gpu} on {node} is still held by pod {pod}, which has finished; this lasts {seconds:duration}."
    ),
    "gpu-zombie.pod-deleted": (
        "GPU {gpu} on {node} is still held by pod {pod}, which was deleted; this lasts {seconds:duration}."
    ),
    "gpu-zombie.pod-terminating": (
        "GPU {gpu} on {node} is still held by pod {pod}, which should have ended {seconds:duration} ago."
    ),
    "gpu-zombie.process": "Its process {pid} is still on the card.",
    "gpu-zombie.allocation": "No process of {pod} is left on GPU {gpu}, but {node} keeps the card for it.",
    "gpu-zombie.advice": (
        "On {node}: see why process {pid} does not end (ps -o pid,stat,wchan:32,cmd -p {pid}); if nobody needs it: "
        "kill -9 {pid}"
    ),
    "gpu-zombie.allocation.advice": "See what keeps the pod: kubectl describe pod {pod} -n {namespace}",
    # gpu-idle
    "rule.gpu-idle": "GPU held but idle",
    "doc.gpu-idle": (
        "A live pod holds cards and does nothing with them, or uses only some of them. Not said within `warm_up` of "
        "its start, nor while the card draws power."
    ),
    "doc.gpu-idle.severity": "warning; critical after `critical_after`",
    "doc.gpu-idle.incident": "Development environments kept GPUs that were not used for hours.",
    "doc.gpu-idle.limit.warning_after": "How long a card of a job may do nothing.",
    "doc.gpu-idle.limit.critical_after": "From when on that is critical.",
    "doc.gpu-idle.limit.notebook_warning_after": "The same for notebooks.",
    "doc.gpu-idle.limit.notebook_critical_after": "The same for notebooks.",
    "doc.gpu-idle.limit.warm_up": "How long after its start a pod is left alone.",
    "doc.gpu-idle.limit.power_times": "A card that draws so many times its least power works.",
    "doc.gpu-idle.limit.power_share": "And at least this share of what is between its least power and its limit.",
    "gpu-idle.idle-notebook": (
        "The notebook {namespace}/{pod} has not used GPU {gpu} on {node} for {seconds:duration}."
    ),
    "gpu-idle.idle-notebook.advice": (
        "Ask its owner to stop it, or stop it: kubectl delete pod {pod} -n {namespace}. Files on its volume stay."
    ),
    "gpu-idle.idle-job": "Pod {namespace}/{pod} has not used GPU {gpu} on {node} for {seconds:duration}.",
    "gpu-idle.idle-job.advice": (
        "See what it does: kubectl logs {pod} -n {namespace} --tail=50. If it is through: kubectl delete pod {pod} "
        "-n {namespace}"
    ),
    "gpu-idle.hung-job": (
        "Pod {namespace}/{pod} seems to hang: GPU {gpu} on {node} has done nothing for {seconds:duration}, and its "
        "log has stopped too."
    ),
    "gpu-idle.hung-job.advice": (
        "Look where it hangs: kubectl exec {pod} -n {namespace} -- py-spy dump --pid 1 (often a collective that "
        "waits for a lost worker). Then restart the job from its last checkpoint."
    ),
    "gpu-idle.waiting-for-data": (
        "Pod {namespace}/{pod} waits for data: GPU {gpu} on {node} has done nothing for {seconds:duration}."
    ),
    "gpu-idle.waiting-for-data.advice": (
        "Check the storage that it reads from: on {node} run iostat -x 5 and nfsiostat 5; see if {namespace}/{pod} "
        "can read its dataset."
    ),
    "gpu-idle.partially-idle": (
        "Job {job} ({namespace}) uses only some of its GPUs: {idle} of {gpus} have done nothing for {seconds:duration}."
    ),
    "gpu-idle.partially-idle.advice": (
        "Ask its owner to request fewer than {gpus:GPU|GPUs}, or to use them all (torchrun --nproc_per_node; check "
        "CUDA_VISIBLE_DEVICES in {namespace}/{pod})."
    ),
    "gpu-idle.cards": "Idle (node:GPU): {cards}.",
    "gpu-idle.log-stopped": "It last logged {seconds:duration} ago, and its process is still on the card.",
    "gpu-idle.process-waits": "Its process {pid} ({process}) is waiting for I/O (state D).",
    "gpu-idle.node-waits": "On this node {cores:core|cores} on average are waiting for I/O.",
    # gpu-orphan
    "rule.gpu-orphan": "GPU used outside Kubernetes",
    "doc.gpu-orphan": "A process is on a card and belongs to no pod, so nobody accounts for it. It may be an intruder.",
    "doc.gpu-orphan.severity": "warning",
    "doc.gpu-orphan.incident": "A break-in; work started past the platform.",
    "doc.gpu-orphan.limit.allowed": "Processes that belong there, by shell patterns (15 letters at most).",
    "gpu-orphan.host-process": (
        "Process {pid} ({process}) uses GPU {gpu} on {node} and belongs to no pod ({seconds:duration})."
    ),
    "gpu-orphan.other-container": (
        "Container {container} uses GPU {gpu} on {node} past Kubernetes: process {pid} ({process}), for "
        "{seconds:duration}."
    ),
    "gpu-orphan.unknown-owner": (
        "Process {pid} uses GPU {gpu} on {node}, and nothing says whose it is ({seconds:duration})."
    ),
    "gpu-orphan.uid": "It runs as user id {uid}.",
    "gpu-orphan.others": "{count:other process|other processes} outside any pod on the same card: {pids}.",
    "gpu-orphan.host-process.advice": (
        "On {node}: ps -o pid,user,lstart,cmd -p {pid}. If nobody knows it, treat it as an intruder: keep "
        "/proc/{pid}/exe, then kill -9 {pid}"
    ),
    "gpu-orphan.other-container.advice": (
        "On {node}: docker inspect {container} (or crictl inspect {container}) shows who started it. Work has to go "
        "through Kubernetes: docker stop {container}"
    ),
    "gpu-orphan.unknown-owner.advice": (
        "On {node}: cat /proc/{pid}/cgroup; ls -l /proc/{pid}/exe. The agent needs hostPID to see it."
    ),
    # gpu-ghost
    "rule.gpu-ghost": "GPU busy without a process",
    "doc.gpu-ghost": "A card's memory is taken, or it claims to be busy, and there is no process on it.",
    "doc.gpu-ghost.severity": "warning",
    "doc.gpu-ghost.incident": "Cards that nobody used were shown as busy.",
    "gpu-ghost.memory-leak": (
        "{bytes:bytes} of GPU {gpu} on {node} is taken and no process is on it, for {seconds:duration}."
    ),
    "gpu-ghost.latched-utilisation": (
        "GPU {gpu} on {node} claims to be {ratio:percent} busy and no process is on it, for {seconds:duration}."
    ),
    "gpu-ghost.memory-leak.advice": (
        "On {node}: fuser -v /dev/nvidia{gpu} shows who has it open. If nobody: drain the card and nvidia-smi "
        "--gpu-reset -i {gpu}"
    ),
    "gpu-ghost.latched-utilisation.advice": (
        "The counter is stuck. On {node}: nvidia-smi -pm 1; if that does not help: nvidia-smi --gpu-reset -i {gpu}"
    ),
    # gpu-wedged
    "rule.gpu-wedged": "GPU process stuck",
    "doc.gpu-wedged": (
        "A process holds a card and can neither work nor end: stuck in the kernel, dead and not collected, or gone "
        "from the process table."
    ),
    "doc.gpu-wedged.severity": "warning",
    "doc.gpu-wedged.incident": "Hung jobs held cards until the node was rebooted.",
    "gpu-wedged.d-state": (
        "Process {pid} ({process}) on GPU {gpu} of {node} is stuck in the kernel (state D) for {seconds:duration}."
    ),
    "gpu-wedged.zombie-process": (
        "Process {pid} ({process}) on GPU {gpu} of {node} is dead and not gone (state Z) for {seconds:duration}."
    ),
    "gpu-wedged.vanished": (
        "GPU {gpu} on {node} is held by process {pid} ({process}), which does not exist any more, for "
        "{seconds:duration}."
    ),
    "gpu-wedged.d-state.advice": (
        "On {node}: cat /proc/{pid}/stack. If it waits for a mount, repair that; if for the driver: drain and reboot "
        "{node}."
    ),
    "gpu-wedged.zombie-process.advice": (
        "On {node}: its parent has to collect it (ps -o ppid= -p {pid}): restart the container. Threads in state D: "
        "reboot {node}."
    ),
    "gpu-wedged.vanished.advice": (
        "On {node}: fuser -v /dev/nvidia{gpu}; if it shows nobody, drain the card and nvidia-smi --gpu-reset -i {gpu}"
    ),
    # gpu-phantom
    "rule.gpu-phantom": "GPU booked for a pod that is gone",
    "doc.gpu-phantom": "The kubelet counts a card as used, and nobody is there.",
    "doc.gpu-phantom.severity": "warning",
    "doc.gpu-phantom.incident": "Cards that nobody used were counted as taken.",
    "doc.gpu-phantom.limit.refused_within": "How long ago a pod may have been refused to be proof.",
    "gpu-phantom.stale-allocation": (
        "{node} counts GPU {gpu} as used by pod {pod}, which does not exist any more, for {seconds:duration}."
    ),
    "gpu-phantom.terminal-pod": (
        "{node} counts GPU {gpu} as used by pod {pod}, which has finished, and refuses new pods ({seconds:duration})."
    ),
    "gpu-phantom.refused": "It refused pod {pod} for want of GPUs.",
    "gpu-phantom.advice": (
        "Restart the kubelet on {node}: systemctl restart kubelet. If it still lists the card: remove "
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint first, with no GPU pod running."
    ),
}
