"""English: how containers and pods end."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "crash_out_of_memory": "Container {container} was killed because it used more memory than it may (OOMKilled).",
    "crash_out_of_memory_advice": (
        "Raise limits.memory of {container}, or use less: smaller batches, fewer data loader workers."
    ),
    "crash_lost": "How container {container} ended is not known: {node} was restarted, or lost it.",
    "crash_lost_advice": (
        "Was {node} rebooted? kubectl describe node {node}. Submit the job again if it does not come back."
    ),
    "crash_liveness": "Kubernetes killed container {container}: its liveness probe failed.",
    "crash_liveness_advice": (
        "Give the program more time (initialDelaySeconds, timeoutSeconds), or repair what the probe asks."
    ),
    "crash_shm": "Container {container} ended with a bus error: /dev/shm is too small for it.",
    "crash_shm_advice": (
        "Mount an emptyDir with medium: Memory and a sizeLimit (say 16Gi) at /dev/shm, or use fewer data loader "
        "workers (num_workers)."
    ),
    "crash_gpu_memory": "Container {container} ran out of GPU memory.",
    "crash_gpu_memory_advice": (
        "Use a smaller batch or model, or a card with more memory. Is somebody else on the card? gpuwarden status"
    ),
    "crash_gpu_gone": "Container {container} cannot use its GPU: driver or card trouble on {node}.",
    "crash_gpu_gone_advice": "On {node}: nvidia-smi; dmesg | grep NVRM. Cordon the node if the card is ill.",
    "crash_no_module": "Container {container} ended: a Python module is missing in its image.",
    "crash_no_module_advice": "Install it in the image, or start with the right Python environment.",
    "crash_no_file": "Container {container} ended: a file or a data set was not found.",
    "crash_no_file_advice": (
        "Check the path in the job, and that its volume is mounted there: kubectl describe pod {pod} -n {namespace}"
    ),
    "crash_permission": "Container {container} ended: it may not read or write a file.",
    "crash_permission_advice": (
        "Check the owner and the rights of the file, and the user the container runs as (runAsUser)."
    ),
    "crash_ended": (
        "Container {container} ends normally (exit code 0), again and again: Kubernetes restarts it each time."
    ),
    "crash_ended_advice": (
        "If it should end, run it as a Job (restartPolicy: Never). If not, keep its main process in the foreground."
    ),
    "crash_error": "The program in container {container} ended with an error (exit code {code}).",
    "crash_error_advice": "Its own log says why: kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_usage": (
        "The program in container {container} ended with exit code 2: wrong arguments, or the start file was not found."
    ),
    "crash_usage_advice": (
        "Check command, arguments and path: kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_not_executable": "The start file of container {container} may not be executed (exit code 126).",
    "crash_not_executable_advice": (
        "Make it executable (chmod +x), or start it with its interpreter: bash FILE, python FILE"
    ),
    "crash_no_command": "The start command of container {container} was not found (exit code 127).",
    "crash_no_command_advice": "Check the spelling of command, and that it is installed in the image and in PATH.",
    "crash_interrupted": "Container {container} was interrupted (SIGINT, exit code 130).",
    "crash_interrupted_advice": (
        "Somebody or something stopped it: kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_illegal": (
        "Container {container} used an instruction that the processor of {node} does not have (SIGILL, exit code 132)."
    ),
    "crash_illegal_advice": (
        "The image is built for newer processors (AVX): use another build, or other nodes than {node}."
    ),
    "crash_aborted": (
        "Container {container} gave up by itself (SIGABRT, exit code 134): a failed check in a library, often NCCL "
        "or CUDA."
    ),
    "crash_aborted_advice": (
        "The last lines of its log say which: kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_killed": (
        "Container {container} was killed from outside (SIGKILL, exit code 137), and not for its memory limit as far "
        "as Kubernetes knows."
    ),
    "crash_killed_advice": (
        "Usual: {node} ran out of memory (dmesg -T | grep -i oom), somebody stopped the container, or it did not end "
        "within its grace time."
    ),
    "crash_segfault": "The program in container {container} crashed (SIGSEGV, exit code 139).",
    "crash_segfault_advice": (
        "A fault in the program or a library, often CUDA and driver versions that do not match: kubectl logs {pod} "
        "-n {namespace} -c {container} --previous"
    ),
    "crash_terminated": "Container {container} was told to stop (SIGTERM, exit code 143).",
    "crash_terminated_advice": (
        "Somebody deleted or drained it, or its node {node} went down: kubectl get events -n {namespace}"
    ),
    "crash_signal": "Container {container} was ended by signal {signal} (exit code {code}).",
    "crash_signal_advice": "Its own log may say why: kubectl logs {pod} -n {namespace} -c {container} --previous",
    "ran_for": "It had run for {seconds:duration}; restarted {restarts:time|times}.",
    "restarted": "Restarted {restarts:time|times}.",
    "memory_limit": "Its memory limit is {limit:bytes}.",
    "last_words": "Its last words: {message}",
    "shm_default": "The pod mounts nothing at /dev/shm: it has the default, {size:bytes}.",
    "shm_size": "Its volume in memory may hold {size:bytes}.",
    "shm_unlimited": (
        "It has a volume in memory without a limit of its own: what it holds counts as the container's memory."
    ),
    "done": "It has ended, without an error.",
    "failed": "It has failed: {message}",
    "node_refused": "{node} refused it when it came ({reason}): what the scheduler counted on was no longer there.",
    "node_refused_advice": (
        "Submit it again. If it happens often, two schedulers place pods on {node} at the same time."
    ),
    "evicted": "{node} threw it out to save itself: it was short of memory or processes.",
    "evicted_advice": (
        "Set requests.memory to what it really needs, and submit it again. See kubectl describe node {node}"
    ),
    "evicted_disk": "{node} threw it out because its disk was nearly full.",
    "evicted_disk_advice": (
        "Free space on {node} first. Write data to a volume, not into the container; then submit it again."
    ),
    "preempted": "A pod with a higher priority took its place on {node}.",
    "deadline": "It ran longer than it may (activeDeadlineSeconds).",
    "deadline_advice": "Raise activeDeadlineSeconds of the job, or save checkpoints and go on from there.",
    "node_went_down": "Its node {node} was shut down or lost.",
    "submit_again_advice": "Submit it again, once {node} is back or elsewhere.",
    "devices_unavailable": "{node} could not give it {needs:GPU|GPUs}: only {available} were available ({reason}).",
    "devices_advice": (
        "Submit it again. Restart the GPU device plugin's pod on {node} if it goes on, and compare: gpuwarden status"
    ),
    "devices_ill": "{node} could not give it GPUs: the device plugin calls them ill ({reason}).",
    "devices_ill_advice": (
        "On {node}: nvidia-smi; dmesg | grep NVRM. Cordon the node until the cards are well: kubectl cordon {node}"
    ),
    "devices_failed": "{node} could not give it its devices ({reason}).",
}
