"""English: pods that run, pods that do not go, and the frame around every explanation."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "term_grace": (
        "It is being deleted and has {seconds:duration} left to stop by itself (grace period {grace:duration})."
    ),
    "term_ending": "It is being deleted; its node is cleaning it up.",
    "term_node_gone": "It is being deleted, but its node {node} has left the cluster, so its end cannot be confirmed.",
    "term_force_advice": (
        "If the machine {node} is really off: kubectl delete pod {pod} -n {namespace} --force --grace-period=0"
    ),
    "term_node_not_ready": "It is being deleted, but its node {node} is down (not ready) and cannot stop it.",
    "term_node_not_ready_advice": (
        "Bring {node} back (systemctl status kubelet). Only if the machine is certainly off: kubectl delete pod "
        "{pod} -n {namespace} --force --grace-period=0. While it runs, that would leave its processes on the GPUs."
    ),
    "term_finalizer": "It has ended, but a finalizer keeps it: {finalizers}. Its owner ({owner}) has not released it.",
    "term_finalizer_advice": (
        "Check that the controller of {owner} is running, and let it finish. If it is gone for good, remove the "
        'finalizer: kubectl patch pod {pod} -n {namespace} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\''
    ),
    "term_process_d": (
        "Its process {pid} ({process}) on {node} has been stuck in the kernel (state D) for {stuck:duration}: even "
        "kill -9 does not end it."
    ),
    "term_process": "Its process {pid} ({process}) on {node} has not exited for {stuck:duration} (state {state}).",
    "term_process_advice": (
        "Find out what it waits for on {node}: cat /proc/{pid}/stack. If it is the GPU driver or a dead mount: drain "
        "and reboot {node}."
    ),
    "term_volume": "Its containers have ended, but {node} cannot unmount its volumes.",
    "term_volume_advice": (
        "On {node}: find the process that still uses it with fuser -vm PATH. If the file server is dead: umount -f "
        "-l PATH"
    ),
    "term_kill_failed": "{node} reports that it cannot stop its containers.",
    "term_unknown": "It should have terminated {seconds:duration} ago, but no reason is reported.",
    "term_unknown_advice": (
        "On {node}: journalctl -u kubelet | grep {pod}; crictl ps -a | grep {pod}. Do not force it (namespace "
        "{namespace}) before you know that its processes have ended."
    ),
    "term_holds_gpus": "Until it is gone, it keeps {gpus:gpus} on {node} ({resource}).",
    "running": "It is running on {node}. It requested no GPU.",
    "running_not_seen": "It is running on {node} with {gpus:gpus}; their activity is not visible.",
    "agent_silent": "The agent on {node} does not respond.",
    "cards_unknown": "No agent on {node} reports its GPUs.",
    "agent_advice": "Bring the gpuwarden agent on {node} up: kubectl get pods -A -o wide | grep gpuwarden",
    "restarted_before": (
        "Container {container} was restarted {restarts:time|times}; the last time it ended with exit code {code}."
    ),
    "card_faulty": "It is running on {node}, but {count:of its GPUs is|of its GPUs are} faulty (GPU {cards}): {what}.",
    "card_faulty_advice": "Save a checkpoint and move the job. An admin should cordon {node} and check GPU {cards}.",
    "card_wedged": "One of its processes is stuck on {count:GPU|GPUs} of {node} (GPU {cards}): {what}.",
    "card_wedged_advice": "Stop the job if you can; if the process remains, drain and reboot {node} (GPU {cards}).",
    "idle": "It holds {gpus:gpus} on {node} and has not used them for {seconds:duration}.",
    "idle_advice": (
        "{user}: stop it if you do not need it, so that other jobs get the GPUs: on your platform, or kubectl delete "
        "pod {pod} -n {namespace}"
    ),
    "service_waits": (
        "It is an inference service with {gpus:GPU|GPUs} on {node} and has had no requests to work on for "
        "{seconds:duration}."
    ),
    "service_waits_advice": (
        "A service may wait, so nothing is released. If it is idle at the same hours every day, gpu-idle names "
        "them: run fewer "
        "replicas then."
    ),
    "is_service": "It is an inference service: its load is what its users ask for.",
    "idle_just_now": (
        "It is running on {node} with {gpus:gpus}, idle for {seconds:duration}. Loading data, "
        "compiling and saving look like that."
    ),
    "idle_memory": "It still holds {size:bytes} of GPU memory.",
    "log_empty": "It uses the GPU, but its log has been empty for {seconds:duration}.",
    "log_stopped": "It uses the GPU, but its log has not grown for {seconds:duration}.",
    "silent_advice": (
        "Python may buffer its output: set PYTHONUNBUFFERED=1 or use python -u. Check whether it hangs: kubectl exec "
        "{pod} -n {namespace} -- py-spy dump --pid 1"
    ),
    "partly_idle": "It is running on {node}, but {unused} of its {gpus:GPU|GPUs} are unused.",
    "partly_idle_advice": (
        "Request fewer GPUs next time, or let the program use all of them (torchrun --nproc_per_node={gpus})."
    ),
    "low_use": "It is running on {node} with {gpus:gpus}, but busy only {ratio:percent} of the time.",
    "low_use_advice": "Usual cause: data loading. Try more num_workers, more CPU, faster storage, larger batches.",
    "busy": "It is running normally, {gpus:gpus} busy on {node}.",
    "gpu_use": "GPU: {ratio:percent} busy, {size:bytes} of its memory used.",
    "host_use": "Host: {cores:core|cores}, {memory:bytes} of memory.",
    "cpu_at_limit": (
        "Its CPU usage is at the limit ({cores} of {limit:core|cores}): the GPUs wait for it. Raise limits.cpu."
    ),
    "shm_nearly_full": "Its /dev/shm is nearly full: {used:bytes} of {size:bytes}. A bus error is imminent.",
    "resize_infeasible": "Its resize is not possible on {node}: {message}",
    "resize_deferred": "Its resize waits until {node} has room: {message}",
    "resize_failed": "The kubelet of {node} could not apply its resize: {message}",
    "status_pending": "{pod} is waiting for a node",
    "status_pulling": "{pod} is waiting for its image",
    "status_creating": "{pod} is being created",
    "status_crashing": "{pod} keeps crashing",
    "status_terminating": "{pod} is being deleted",
    "status_idle": "{pod} is idle",
    "status_silent": "{pod} is running without log output",
    "status_running": "{pod} is running",
    "status_finished": "{pod} has ended",
    "status_not_created": "{pod} has no pods",
    "status_unseen": "{pod} cannot be explained now",
    "for_seconds": "for {seconds:duration}",
    "of_user": "user {name}",
    "of_job": "job {name}",
    "in_queue": "queue {name}",
    "list_comma": ", ",
    "what_to_do": "What to do:",
    "running_node_down": "Its node {node} is down (not ready): whether it is still running is unknown.",
}
