"""English: volumes, sandboxes, configuration, and containers that cannot start."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "mount_access_denied": "The file server does not let {node} mount {source}.",
    "mount_access_denied_advice": (
        "On the server: is the path exported, and to the address of {node}? (exportfs -v). Then {source} mounts "
        "automatically."
    ),
    "mount_no_such_export": "The path {source} does not exist on the file server.",
    "mount_no_such_export_advice": (
        "Create the directory on the server, or correct the path of volume {volume} in the job."
    ),
    "mount_helper_missing": "{node} cannot mount this kind of file system: the mount helper is not installed.",
    "mount_helper_missing_advice": (
        "On {node}: install nfs-common (Debian, Ubuntu), nfs-utils (CentOS), or the client that the file system needs."
    ),
    "mount_unreachable": "{node} cannot reach the storage of volume {volume} ({source}).",
    "mount_unreachable_advice": (
        "Is the file server up? On {node}: showmount -e SERVER, ping SERVER. Then check network and firewall."
    ),
    "mount_stale": "The mount of {source} on {node} is stale: the server no longer knows the node's open files.",
    "mount_stale_advice": (
        "On {node}: umount -f -l PATH; it is then mounted again. If many pods hang, drain and reboot the node."
    ),
    "mount_multi_attach": "Volume {volume} is still attached to another node, but allows only one node.",
    "mount_multi_attach_advice": (
        "Find the pod that still uses it (kubectl get volumeattachment). If that node is dead, delete the old pod; "
        "detaching takes about 6 min."
    ),
    "mount_claim_missing": "The PVC {name} does not exist in {namespace}.",
    "mount_claim_missing_advice": "Create the PVC {name}, or correct its name: kubectl get pvc -n {namespace}",
    "mount_secret_missing": "The Secret {name} that it mounts does not exist in {namespace}.",
    "mount_secret_missing_advice": "Create the Secret {name}, or correct its name: kubectl get secret -n {namespace}",
    "mount_config_missing": "The ConfigMap {name} that it mounts does not exist in {namespace}.",
    "mount_config_missing_advice": (
        "Create the ConfigMap {name}, or correct its name: kubectl get configmap -n {namespace}"
    ),
    "mount_key_missing": "Volume {volume} asks for a key that the Secret or ConfigMap does not have.",
    "mount_key_missing_advice": "Add the key, or correct the items of volume {volume}.",
    "mount_host_path": "The path of volume {volume} on {node} does not exist, or is not of the declared type.",
    "mount_host_path_advice": "Create it on {node}, or correct path or type (Directory, File ...) of volume {volume}.",
    "mount_driver_missing": "The storage driver (CSI) of volume {volume} is not running on {node}.",
    "mount_driver_missing_advice": "Bring the driver's pod on {node} back: kubectl get pods -A -o wide | grep csi",
    "mount_disk_full": "The disk of {node} is full: volume {volume} cannot be set up.",
    "mount_disk_full_advice": "Free space on {node}: df -h, then old images and logs.",
    "mount_bad_filesystem": (
        "The file system of volume {volume} cannot be mounted on {node}: it is corrupt or of another type."
    ),
    "mount_bad_filesystem_advice": "First check the device on {node} (dmesg; fsck while it is unmounted).",
    "mount_permission": "{node} cannot mount volume {volume} ({source}): permission denied.",
    "mount_permission_advice": "Check the permissions of {source} on the server, and its credentials.",
    "mount_timed_out": "Volume {volume} was not mounted on {node} in time, without an error message.",
    "mount_timed_out_advice": (
        "On {node}: journalctl -u kubelet | grep -i volume. Often the file server does not respond."
    ),
    "mount_unknown": "Volume {volume} cannot be mounted on {node}.",
    "mount_unknown_advice": "Read the message above. More on {node}: journalctl -u kubelet | grep -i mount",
    "mount_says": "The node says ({count:time|times}): {message}",
    "mount_hung": (
        "The mount {path} on {node} has not responded for {hung:duration}; processes that wait for it cannot be "
        "stopped."
    ),
    "mount_hung_advice": "Bring the server of {path} back. If that is not possible: on {node} umount -f -l {path}",
    "sandbox_disk_full": "{node} cannot start pods: its disk is full.",
    "sandbox_disk_full_advice": "Free space on {node}: df -h, then old images and logs.",
    "sandbox_no_address": "{node} has no free pod IP addresses.",
    "sandbox_no_address_advice": (
        "Look for leftovers in /var/lib/cni/networks on {node}, or give the node a larger pod network."
    ),
    "sandbox_runtime_class": "The container runtime of {node} does not have the runtime class that the pod requests.",
    "sandbox_runtime_class_advice": (
        "Configure the runtime on {node} (nvidia-ctk runtime configure, then restart it), or remove runtimeClassName."
    ),
    "sandbox_pause_image": "{node} cannot start any pod: the pause image is missing and cannot be pulled.",
    "sandbox_pause_image_advice": (
        "Pull or load the pause image on {node} (configured in kubelet and containerd as sandbox_image). A cleanup "
        "may have removed it: crictl rmi --prune does."
    ),
    "sandbox_network": "{node} cannot set up the pod's network (CNI).",
    "sandbox_network_advice": (
        "Check the network plugin's pod on {node}: kubectl get pods -A -o wide | grep -E 'calico|flannel|cilium'"
    ),
    "sandbox_runtime_slow": "The container runtime of {node} does not respond in time.",
    "sandbox_runtime_slow_advice": (
        "{node} is overloaded or its runtime hangs: systemctl status containerd docker; check disk I/O."
    ),
    "sandbox_other": "{node} cannot set up the pod's sandbox.",
    "sandbox_other_advice": "Read the message above. More on {node}: journalctl -u kubelet -u containerd",
    "pause_pull": "Why it cannot be pulled: {cause:code}.",
    "runtime_says": "The node says: {message}",
    "config_object_missing": "The {kind} {name} that container {container} needs does not exist in {namespace}.",
    "config_object_missing_advice": "Create the {kind} {name} in {namespace}, or correct its name in the job.",
    "config_key_missing": "The {kind} {name} has no key {key}, which container {container} needs.",
    "config_key_missing_advice": "Add {key} to the {kind} {name} in {namespace}, or correct the job.",
    "config_root": "Container {container} would run as root, which the pod forbids (runAsNonRoot).",
    "config_root_advice": "Set runAsUser to a number above 0, or use an image with another user.",
    "config_other": "Container {container} cannot be created with its configuration.",
    "config_other_advice": "Read the message above: kubectl describe pod {pod} -n {namespace}",
    "start_node_not_ready": "Its node {node} is down (not ready) and cannot start it.",
    "start_normal": "It has been starting on {node} for {seconds:duration}, which is normal.",
    "start_normal_advice": "Check again in two minutes: kubectl get pod {pod} -n {namespace}",
    "start_long": "It should have started on {node} long ago ({seconds:duration}), but no reason is reported.",
    "start_long_advice": "kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}",
    "init_running": "Its init container {container} has been running for {seconds:duration}.",
    "init_running_advice": "Check what it is doing: kubectl logs {pod} -n {namespace} -c {container}",
    "start_driver_mismatch": (
        "The GPU driver of {node} was updated without a reboot: kernel module and library do not match."
    ),
    "start_driver_mismatch_advice": (
        "Drain and reboot {node} (or reload the nvidia modules). Until then no GPU job starts there."
    ),
    "start_driver_too_old": "The image of {container} needs a newer GPU driver than {node} has.",
    "start_driver_too_old_advice": "Use an image with an older CUDA, or update the driver of {node}.",
    "start_driver_broken": "The GPU driver or its container toolkit does not work on {node}.",
    "start_driver_broken_advice": (
        "On {node}: nvidia-smi; nvidia-container-cli info; dmesg | grep NVRM. Cordon the node until it works."
    ),
    "start_runtime_broken": "The container runtime of {node} is misconfigured: it cannot run its own helper.",
    "start_runtime_broken_advice": (
        "On {node}: check the nvidia runtime in the runtime's configuration, and that its file is executable."
    ),
    "start_disk_full": "The disk of {node} is full: container {container} cannot be created.",
    "start_disk_full_advice": "Free space on {node}: df -h, then old images and logs.",
    "start_exec_format": (
        "Container {container} cannot run its program: it is built for another CPU architecture, or lacks a #! line."
    ),
    "start_exec_format_advice": "Build the image for this architecture; in a script, make #!/bin/bash the first line.",
    "start_hook": "The start hook of container {container} failed.",
    "start_hook_advice": "Check lifecycle.postStart of the job: kubectl describe pod {pod} -n {namespace}",
    "start_workdir": "The working directory of container {container} does not exist.",
    "start_workdir_advice": "Correct workingDir, or mount the volume that holds it.",
    "start_mount_kind": (
        "A mount of container {container} has the wrong type: a file instead of a directory, or vice versa."
    ),
    "start_mount_kind_advice": "Check mountPath and subPath of its volumes.",
    "start_not_executable": "The start file of container {container} is not executable: {file}.",
    "start_not_executable_advice": (
        "Make it executable (chmod +x {file}), or start it with its interpreter: bash {file}"
    ),
    "start_no_start_file": "The start file of container {container} does not exist: {file}.",
    "start_no_start_file_advice": "Check command and path ({file}): is it in the image, or on a volume mounted there?",
    "start_runtime_slow": "The container runtime of {node} does not respond in time.",
    "start_runtime_slow_advice": (
        "{node} is overloaded or its runtime hangs: systemctl status containerd docker; check disk I/O."
    ),
    "start_other": "Container {container} cannot be started on {node}.",
    "start_other_advice": "Read the message above: kubectl describe pod {pod} -n {namespace}",
}
