"""English: how containers and pods end."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "crash_out_of_memory": "Container {container} was killed because it exceeded its memory limit (OOMKilled).",
    "crash_out_of_memory_advice": (
        "Raise limits.memory of {container}, or use less: smaller batches, fewer data loader workers."
    ),
    "crash_lost": "How container {container} ended is unknown: {node} was restarted, or lost it.",
    "crash_lost_advice": (
        "Was {node} rebooted? kubectl describe node {node}. Submit the job again if it does not recover."
    ),
    "crash_liveness": "Kubernetes killed container {container}: its liveness probe failed.",
    "crash_liveness_advice": (
        "Give the program more time (initialDelaySeconds, timeoutSeconds), or fix what the probe checks."
    ),
    "crash_shm": "Container {container} ran out of shared memory: its /dev/shm is too small.",
    "crash_shm_advice": (
        "Mount an emptyDir with medium: Memory and a sizeLimit (say 16Gi) at /dev/shm, or use fewer data loader "
        "workers (num_workers)."
    ),
    "crash_gpu_memory": "Container {container} ran out of GPU memory.",
    "crash_gpu_memory_advice": (
        "Use a smaller batch or model, or a GPU with more memory. Does another process use the GPU? gpuwarden status"
    ),
    "crash_no_module": "Container {container} failed: a Python module is missing in its image.",
    "crash_no_module_advice": "Install it in the image, or start with the right Python environment.",
    "crash_no_file": "Container {container} failed: a file or dataset was not found.",
    "crash_no_file_advice": (
        "Check the path in the job, and that its volume is mounted there: kubectl describe pod {pod} -n {namespace}"
    ),
    "crash_permission": "Container {container} failed: it lacks permission to read or write a file.",
    "crash_permission_advice": "Check the owner and mode of the file, and the user the container runs as (runAsUser).",
    "crash_ended": "Container {container} keeps exiting normally (exit code 0), and Kubernetes restarts it each time.",
    "crash_ended_advice": (
        "If it should end, run it as a Job (restartPolicy: Never). If not, keep its main process in the foreground."
    ),
    "crash_error": "The program in container {container} failed (exit code {code}).",
    "crash_error_advice": "Its log shows why: kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_usage": (
        "The program in container {container} exited with code 2: wrong arguments, or the start file was not found."
    ),
    "crash_usage_advice": (
        "Check command, arguments and path: kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_not_executable": "The start file of container {container} is not executable (exit code 126).",
    "crash_not_executable_advice": (
        "Make it executable (chmod +x), or start it with its interpreter: bash FILE, python FILE"
    ),
    "crash_no_command": "The start command of container {container} was not found (exit code 127).",
    "crash_no_command_advice": "Check the spelling of command, and that it is installed in the image and in PATH.",
    "crash_interrupted": "Container {container} was interrupted (SIGINT, exit code 130).",
    "crash_interrupted_advice": (
        "A user or program stopped it: kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_illegal": (
        "Container {container} used a CPU instruction that {node} does not support (SIGILL, exit code 132)."
    ),
    "crash_illegal_advice": "The image is built for newer CPUs (AVX): use another build, or nodes other than {node}.",
    "crash_aborted": (
        "Container {container} aborted (SIGABRT, exit code 134): a failed assertion in a library, often NCCL or CUDA."
    ),
    "crash_aborted_advice": (
        "The last lines of its log show which: kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_killed": (
        "Container {container} was killed from outside (SIGKILL, exit code 137); Kubernetes reports no memory limit "
        "violation."
    ),
    "crash_killed_advice": (
        "Usual causes: {node} ran out of memory (dmesg -T | grep -i oom), the container was stopped by hand, or it "
        "did not exit within its grace period."
    ),
    "crash_segfault": "The program in container {container} crashed (SIGSEGV, exit code 139).",
    "crash_segfault_advice": (
        "A fault in the program or a library, often mismatched CUDA and driver versions: kubectl logs {pod} -n "
        "{namespace} -c {container} --previous"
    ),
    "crash_terminated": "Container {container} received SIGTERM (exit code 143).",
    "crash_terminated_advice": (
        "It was deleted or drained, or its node {node} went down: kubectl get events -n {namespace}"
    ),
    "crash_signal": "Container {container} was killed by signal {signal} (exit code {code}).",
    "crash_signal_advice": "Its log may show why: kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_inotify": "Container {container} failed: the inotify limits of {node} are used up.",
    "crash_inotify_advice": (
        "On {node}: sysctl -w fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=1048576, "
        "permanently in /etc/sysctl.d."
    ),
    "ran_for": "It had run for {ran:duration}; restarted {restarts:time|times}.",
    "restarted": "Restarted {restarts:time|times}.",
    "memory_limit": "Its memory limit is {limit:bytes}.",
    "last_words": "Its last log lines: {message}",
    "shm_default": "The pod mounts nothing at /dev/shm, so it has the default of {size:bytes}.",
    "shm_size": "Its memory volume is limited to {size:bytes}.",
    "shm_unlimited": "Its memory volume has no limit of its own: its contents count as the container's memory.",
    "done": "It has finished without an error.",
    "failed": "It failed: {message}",
    "node_refused": "{node} rejected it on arrival ({reason}): the resources that the scheduler counted on were gone.",
    "node_refused_advice": (
        "Submit it again. If it happens often, two schedulers place pods on {node} at the same time."
    ),
    "evicted": "{node} evicted it because it was short of memory or processes.",
    "evicted_advice": "Set requests.memory to its real usage, and submit it again. See kubectl describe node {node}",
    "evicted_disk": "{node} evicted it because its disk was nearly full.",
    "evicted_disk_advice": (
        "Free space on {node} first. Write data to a volume, not into the container; then submit it again."
    ),
    "preempted": "A pod with a higher priority preempted it on {node}.",
    "evicted_emptydir": (
        "It was removed because one of its emptyDir volumes exceeded its own sizeLimit; {node} is fine."
    ),
    "evicted_emptydir_advice": (
        "Raise the sizeLimit of the emptyDir that the message names (for medium Memory also limits.memory), "
        "or write less into it."
    ),
    "evicted_own_limit": "It was removed because it exceeded its own ephemeral-storage limit; {node} is fine.",
    "evicted_own_limit_advice": (
        "Raise limits.ephemeral-storage, or write data and checkpoints to a volume instead of the container."
    ),
    "evicted_pids": "{node} evicted it because the node ran out of process ids.",
    "evicted_pids_advice": (
        "Find the pod that forks on {node} (ps -eLf), and set podPidsLimit in the kubelet's configuration."
    ),
    "evicted_other": "The kubelet of {node} evicted it.",
    "evicted_other_advice": "Read the message above; then kubectl describe node {node}",
    "preempted_critical": "{node} removed it to make room for a critical system pod.",
    "preempted_critical_advice": (
        "Its controller replaces it. If it happens again, raise the resources that {node} reserves for the "
        "system (kubeReserved, systemReserved)."
    ),
    "admission_topology": (
        "{node} refused it: its CPUs, memory and devices cannot be aligned on one NUMA node ({reason})."
    ),
    "admission_topology_advice": (
        "Request fewer GPUs or CPUs per pod, or relax topologyManagerPolicy of the kubelet on {node} (best-effort)."
    ),
    "admission_affinity": "{node} refused it: the node's labels no longer match the pod ({reason}).",
    "admission_affinity_advice": (
        "Restore the labels of {node}, or delete the pod so that it is scheduled again: kubectl get node "
        "{node} --show-labels"
    ),
    "admission_other": "The kubelet of {node} refused it ({reason}).",
    "admission_other_advice": (
        "Read the message above, and delete the pod so that it is scheduled again; then kubectl describe node {node}"
    ),
    "deadline": "It exceeded its maximum run time (activeDeadlineSeconds).",
    "deadline_advice": "Raise activeDeadlineSeconds of the job, or save checkpoints and resume from them.",
    "disrupted_eviction": (
        "It was evicted through the Kubernetes API from {node}: the node was drained, or an autoscaler or descheduler "
        "moved it."
    ),
    "disrupted_eviction_advice": (
        "If a controller owns it, a new pod replaces it; otherwise submit it again. Whether the node is cordoned: "
        "kubectl get node {node}"
    ),
    "disrupted_taint": "{node} has a NoExecute taint that it does not tolerate, or not for this long.",
    "disrupted_taint_advice": (
        "Find out why the node is tainted (a node that is not ready has such a taint): kubectl describe node {node}; "
        "then submit it again."
    ),
    "node_went_down": "Its node {node} was shut down or lost.",
    "submit_again_advice": "Submit it again, once {node} is back or elsewhere.",
    "devices_unavailable": (
        "{node} could not allocate {needs:gpus} to it: only {available} were available ({reason})."
    ),
    "devices_advice": (
        "Submit it again. If this keeps happening, restart the GPU device plugin's pod on {node} and compare: "
        "gpuwarden status"
    ),
    "devices_ill": "{node} could not allocate GPUs to it: the device plugin reports them as unhealthy ({reason}).",
    "devices_ill_advice": (
        "On {node}: nvidia-smi; dmesg | grep NVRM. Cordon the node until the GPUs are healthy: kubectl cordon {node}"
    ),
    "devices_failed": "{node} could not allocate its devices ({reason}).",
}
