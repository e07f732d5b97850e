"""English: failures that the end of a container's log proves."""

from __future__ import annotations

_LOG = "kubectl logs {pod} -n {namespace} -c {container} --previous"

WORDS: dict[str, str] = {
    "crash_cuda_illegal_access": (
        "The program in container {container} failed: a GPU kernel accessed memory it may not."
    ),
    "crash_cuda_illegal_access_advice": (
        "Debug the program or its CUDA extension (CUDA_LAUNCH_BLOCKING=1). Only if other jobs fail on the same GPU of "
        "{node}, check its XIDs: gpuwarden status"
    ),
    "crash_cuda_assert": (
        "The program in container {container} failed: a GPU kernel's own check failed, such as an index or label "
        "out of "
        "range."
    ),
    "crash_cuda_assert_advice": (
        "Fix the program or its data; the GPU is fine. CUDA_LAUNCH_BLOCKING=1 shows the operation."
    ),
    "crash_cuda_arch": "The program in container {container} has no code for the GPU model of {node}.",
    "crash_cuda_arch_advice": "Use a build of the framework or extension that supports this GPU, or another GPU model.",
    "crash_gpu_ecc": "A GPU of {node} reported an uncorrectable memory error to container {container}.",
    "crash_gpu_ecc_advice": (
        "Reset the GPU of {node}; replace it if the error repeats. gpuwarden status shows which GPU it is."
    ),
    "crash_gpu_lost": "Container {container} lost access to its GPU on {node}.",
    "crash_gpu_lost_advice": (
        "Restart the pod. If nvidia-smi fails on {node} too, drain the node and reboot it; if it works there, fix the "
        "container runtime's configuration (systemd cgroups)."
    ),
    "crash_gpu_error": "A CUDA operation failed in container {container}; GPU and program are both possible causes.",
    "crash_gpu_error_advice": "Check the XIDs of {node} first (gpuwarden status; dmesg | grep NVRM), then the program.",
    "crash_gpu_driver": "Container {container} cannot use the NVIDIA driver of {node}.",
    "crash_gpu_driver_advice": "On {node}: nvidia-smi; check the driver and, with NVSwitch, the fabric manager.",
    "crash_driver_too_old": "The NVIDIA driver of {node} is too old for the image of container {container}.",
    "crash_driver_too_old_advice": "Upgrade the driver of {node}, or use an image with an older CUDA version.",
    "crash_driver_mismatch": "NVIDIA kernel module and libraries differ for container {container} on {node}.",
    "crash_driver_mismatch_advice": (
        "Reboot {node} if its driver was updated without a reboot; otherwise remove CUDA's compatibility libraries "
        "from "
        "the image."
    ),
    "crash_driver_not_loaded": "Container {container} sees no GPU or no NVIDIA driver on {node}.",
    "crash_driver_not_loaded_advice": (
        "Check that the pod requests a GPU and that CUDA_VISIBLE_DEVICES is not empty; then the driver: nvidia-smi on "
        "{node}"
    ),
    "crash_host_memory": "The program in container {container} ran out of host memory.",
    "crash_host_memory_advice": (
        "Raise limits.memory of {container}, or use less: fewer data loader workers, smaller arrays."
    ),
    "crash_native_crash": "The program in container {container} crashed with a segmentation fault.",
    "crash_native_crash_advice": (
        "A native library failed: check that framework, CUDA and extensions fit together. If unrelated jobs crash on "
        "{node} too, check its memory."
    ),
    "crash_pids_limit": (
        "The program in container {container} could not create a process or thread: the limit is reached."
    ),
    "crash_pids_limit_advice": (
        "Use fewer workers and threads (OMP_NUM_THREADS), or raise podPidsLimit of the kubelet on {node}."
    ),
    "crash_open_files": "The program in container {container} reached its limit of open files.",
    "crash_open_files_advice": (
        "Raise nofile of the container runtime, keep fewer files open, or use "
        "torch.multiprocessing.set_sharing_strategy('file_system')."
    ),
    "crash_node_limit": "The program in container {container} reached a kernel limit of {node}.",
    "crash_node_limit_advice": "Raise the limit that the log names on {node} (sysctl).",
    "crash_nccl": "A collective operation (NCCL) failed in container {container}.",
    "crash_nccl_advice": (
        "Find the rank that failed first and read its log; set NCCL_DEBUG=INFO for NCCL's own message."
    ),
    "crash_nccl_timeout": "A collective operation timed out in container {container}: another rank did not arrive.",
    "crash_nccl_timeout_advice": (
        "Find the rank that stopped first and read its log; then check the network between the nodes."
    ),
    "crash_nccl_peer": "Container {container} lost the connection to another rank of its job.",
    "crash_nccl_peer_advice": (
        "Read the log of the rank that ended first; if none ended, check the network port of its node."
    ),
    "crash_nccl_system": "A system call of NCCL failed in container {container}.",
    "crash_nccl_system_advice": (
        "Check the network interface (NCCL_SOCKET_IFNAME), the memlock limit and NCCL's own message (NCCL_DEBUG=INFO)."
    ),
    "crash_nccl_cuda": "A CUDA call of NCCL failed in container {container}.",
    "crash_nccl_cuda_advice": (
        "Read NCCL's own message (NCCL_DEBUG=INFO) and check the XIDs of {node}: gpuwarden status"
    ),
    "crash_rank_failed": (
        "A process of the job failed in container {container}; its error is not in the last lines of the log."
    ),
    "crash_rank_failed_advice": "Read the log of the rank that failed first; the other ranks' errors are consequences: "
    + _LOG,
    "crash_read_only": "The program in container {container} failed: it cannot write to a read-only file system.",
    "crash_read_only_advice": (
        "Write to a writable volume, or mount this one writable (readOnly, readOnlyRootFilesystem)."
    ),
    "crash_disk_full": "The program in container {container} failed: no space is left where it writes.",
    "crash_disk_full_advice": "Free space on the volume that the program writes to, or write elsewhere.",
    "crash_disk_quota": (
        "The program in container {container} failed: the disk quota of its user or project is used up."
    ),
    "crash_disk_quota_advice": "Delete files there, or raise the quota.",
    "crash_storage_io": "The program in container {container} failed: its storage returned I/O errors.",
    "crash_storage_io_advice": "Check the storage server, the mount and the disks of {node}: dmesg -T | tail",
    "crash_mount_dead": "The program in container {container} failed: a mount on {node} is dead.",
    "crash_mount_dead_advice": (
        "Restart the pod so that it is mounted again; for FUSE, restart the mount's own pod first."
    ),
    "crash_missing_symbol": (
        "The program in container {container} failed: a shared library or symbol is missing in its image."
    ),
    "crash_missing_symbol_advice": "Use builds that fit together: framework, CUDA, C library and extensions.",
    "crash_dns": "The program in container {container} failed: a host name cannot be resolved.",
    "crash_dns_advice": "Correct the name, or check the cluster's DNS and whether pods may reach the internet.",
    "crash_refused": "The program in container {container} failed: a server refused the connection.",
    "crash_refused_advice": "Start the service at that address, or correct the address.",
    "crash_timeout": "The program in container {container} failed: a server does not answer.",
    "crash_timeout_advice": "Check that the server runs, and the network policy and route from {node} to it.",
    "crash_http": "The program in container {container} failed: a hub or object store rejected its request.",
    "crash_http_advice": "Check the name of the object or repository, and the pod's credentials.",
    "crash_http_denied": "The program in container {container} failed: a hub or object store rejected its credentials.",
    "crash_http_denied_advice": "Give the pod valid credentials with access to this object or repository.",
    "crash_http_missing": "The program in container {container} failed: an object or repository does not exist.",
    "crash_http_missing_advice": "Correct the name of the model, dataset or object.",
    "crash_http_error": "The program in container {container} failed: a hub or object store is out of order.",
    "crash_http_error_advice": "Try again later, or cache the files; if the server is yours, look at it.",
    "crash_rate_limited": "The program in container {container} failed: a hub or object store limits its requests.",
    "crash_rate_limited_advice": "Log in, cache the files, or start fewer workers at once.",
    "crash_arguments": "The command line of container {container} is wrong.",
    "crash_arguments_advice": "Correct the arguments of the command.",
    "crash_bad_executable": "A program that container {container} starts cannot be executed.",
    "crash_bad_executable_advice": "Make it executable (chmod +x), or use a build for the architecture of {node}.",
    "crash_asked_to_stop": "The program in container {container} was asked to stop (signal).",
    "crash_asked_to_stop_advice": "Not an error of the program: kubectl get events -n {namespace}",
    "crash_python_exception": "The program in container {container} raised {exception} (exit code {code}).",
    "crash_python_exception_advice": "Fix the program, its data or its configuration: " + _LOG,
    "log_says": "Its log says: {message}",
    "first_rank": "Rank {rank} failed first; errors of the other ranks are consequences.",
    "first_failed_pod": "Pod {first} of the same job failed first, on {first_node}: gpuwarden why {first}",
}
