"""English: pods that run, pods that do not go, and the frame around every explanation."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "term_grace": (
        "It is being deleted and has {seconds:duration} left to stop by itself (grace time {grace:duration})."
    ),
    "term_ending": "It is being deleted; its node is just clearing it away.",
    "term_node_gone": (
        "It is being deleted, but its node {node} is no longer part of the cluster: nobody can confirm that it has "
        "ended."
    ),
    "term_force_advice": (
        "If the machine {node} is really off: kubectl delete pod {pod} -n {namespace} --force --grace-period=0"
    ),
    "term_node_not_ready": "It is being deleted, but its node {node} is down (not ready): nobody there ends it.",
    "term_node_not_ready_advice": (
        "Bring {node} back (systemctl status kubelet). Only if the machine is certainly off: kubectl delete pod "
        "{pod} -n {namespace} --force --grace-period=0. While it runs, that would leave its processes on the GPUs."
    ),
    "term_finalizer": (
        "It has ended, but a finalizer keeps it: {finalizers}. Whoever set it ({owner}) has not released it."
    ),
    "term_finalizer_advice": (
        "See whether the controller of {owner} runs, and let it finish. If it is gone for good, remove the "
        'finalizer: kubectl patch pod {pod} -n {namespace} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\''
    ),
    "term_process_d": (
        "Its process {pid} ({process}) on {node} hangs in the kernel (state D) for {seconds:duration}: not even kill "
        "-9 ends it."
    ),
    "term_process": "Its process {pid} ({process}) on {node} does not go away (state {state}) for {seconds:duration}.",
    "term_process_advice": (
        "Find out what it waits for on {node}: cat /proc/{pid}/stack. If it is the GPU driver or a dead mount that "
        "does not come back: drain {node} and reboot it."
    ),
    "term_volume": "Its containers have ended, but {node} cannot unmount its volumes.",
    "term_volume_advice": (
        "On {node}: which process still uses it? fuser -vm PATH. A dead file server: umount -f -l PATH"
    ),
    "term_kill_failed": "{node} says that it cannot stop its containers.",
    "term_unknown": "It should have been gone for {seconds:duration}, and nothing says why it is not.",
    "term_unknown_advice": (
        "On {node}: journalctl -u kubelet | grep {pod}; crictl ps -a | grep {pod}. Do not force it (namespace "
        "{namespace}) before you know that its processes have ended."
    ),
    "term_holds_gpus": "Until it is gone it keeps {gpus:GPU|GPUs} on {node} ({resource}).",
    "running": "It runs on {node}. It asked for no GPU.",
    "running_not_seen": "It runs on {node} with {gpus:GPU|GPUs}; what the cards do cannot be seen.",
    "agent_silent": "The agent on {node} does not answer.",
    "cards_unknown": "No agent on {node} reports its cards.",
    "agent_advice": "Bring the gpuwarden agent on {node} up: kubectl get pods -A -o wide | grep gpuwarden",
    "restarted_before": (
        "Container {container} was restarted {restarts:time|times}; the last time it ended with exit code {code}."
    ),
    "card_faulty": "It runs on {node}, but {count:of its cards is|of its cards are} ill (card {cards}): {what}.",
    "card_faulty_advice": "Save a checkpoint and move the job. An admin should cordon {node} and look at card {cards}.",
    "card_wedged": "A process of it hangs on {count:card|cards} of {node} (card {cards}): {what}.",
    "card_wedged_advice": "Stop the job if you can; if the process stays, drain {node} and reboot it (card {cards}).",
    "idle": "It holds {gpus:GPU|GPUs} on {node} and has not used them for {seconds:duration}.",
    "idle_advice": (
        "{user}: stop it if you do not need it, so that others get the GPUs: on your platform, or kubectl delete pod "
        "{pod} -n {namespace}"
    ),
    "idle_just_now": (
        "It runs on {node}; its {gpus:GPU has|GPUs have} done nothing for {seconds:duration}. Loading data, "
        "compiling and saving look like that."
    ),
    "idle_memory": "It keeps {size:bytes} of GPU memory meanwhile.",
    "log_empty": "It works on the GPU, but its log has stayed empty for {seconds:duration}.",
    "log_stopped": "It works on the GPU, but its log has not grown for {seconds:duration}.",
    "silent_advice": (
        "Python may hold its output back: set PYTHONUNBUFFERED=1 or use python -u. See whether it hangs: kubectl "
        "exec {pod} -n {namespace} -- py-spy dump --pid 1"
    ),
    "partly_idle": "It runs on {node}, but {unused} of its {gpus:GPU|GPUs} are not used at all.",
    "partly_idle_advice": (
        "Ask for fewer GPUs next time, or let the program use all of them (torchrun --nproc_per_node={gpus})."
    ),
    "low_use": "It runs on {node}, but its {gpus:GPU is|GPUs are} busy only {ratio:percent} of the time.",
    "low_use_advice": "Usual: data loading. More num_workers, more CPU, faster storage, larger batches.",
    "busy": "It runs well: {gpus:GPU|GPUs} at work on {node}.",
    "gpu_use": "GPU: {ratio:percent} busy, {size:bytes} of its memory used.",
    "host_use": "Host: {cores:core|cores}, {memory:bytes} of memory.",
    "cpu_at_limit": "Its CPU is at the limit ({cores} of {limit:core|cores}): the GPUs wait for it. Raise limits.cpu.",
    "shm_nearly_full": "Its /dev/shm is nearly full: {used:bytes} of {size:bytes}. A bus error is near.",
    "status_pending": "{pod} waits for a node",
    "status_pulling": "{pod} waits for its image",
    "status_creating": "{pod} is being created",
    "status_crashing": "{pod} does not stay up",
    "status_terminating": "{pod} is being deleted",
    "status_idle": "{pod} is idle",
    "status_silent": "{pod} runs without a word",
    "status_running": "{pod} runs",
    "status_finished": "{pod} has ended",
    "status_not_created": "{pod} has no pods",
    "for_seconds": "for {seconds:duration}",
    "of_user": "user {name}",
    "of_job": "job {name}",
    "in_queue": "queue {name}",
    "list_comma": ", ",
    "what_to_do": "What to do:",
    "running_node_down": "Its node {node} is down (not ready): whether it still runs cannot be seen.",
}
