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
    "mount_host_path_advice": (
        "Create it on {node}, or correct path or type (such as Directory or File) of volume {volume}."
    ),
    "mount_driver_missing": "The storage driver (CSI) of volume {volume} is not running on {node}.",
    "mount_driver_missing_advice": "Bring the driver's pod on {node} back: kubectl get pods -A -o wide | grep csi",
    "mount_disk_full": "The disk of {node} is full: volume {volume} cannot be set up.",
    "mount_disk_full_advice": (
        "Free space on {node}: df -h shows which disk is full, and gpuwarden cleanup plan shows what can be removed."
    ),
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
    "mount_storage_denied": (
        "The storage of volume {volume} refuses {node}: its credentials or rights are not accepted."
    ),
    "mount_storage_denied_advice": (
        "Check the keys in the Secret of volume {volume} and the rights of that account on the storage (ceph "
        "auth get, bucket policy, share permissions)."
    ),
    "mount_volume_missing": "What volume {volume} refers to does not exist on the storage ({source}).",
    "mount_volume_missing_advice": "Create the file system, path or bucket, or correct its name in volume {volume}.",
    "mount_nfs_unreachable": "{node} cannot reach the NFS server of {source}.",
    "mount_nfs_unreachable_advice": (
        "Is the server of {source} up? On {node}: ping SERVER; nc -vz SERVER 2049. Then check name "
        "resolution, route and firewall."
    ),
    "mount_nfs_refused": "The server of {source} refuses NFS connections from {node}: its NFS service is not running.",
    "mount_nfs_refused_advice": "On the server: systemctl status nfs-server; then {source} mounts automatically.",
    "mount_attach_limit": "Volume {volume} cannot be attached: {node} already has as many volumes as it can.",
    "mount_attach_limit_advice": (
        "Spread pods with volumes over more nodes, or remove unused volumes from {node}: kubectl get volumeattachment"
    ),
    "mount_attach_failed": "Volume {volume} cannot be attached to {node}.",
    "mount_attach_failed_advice": (
        "Look at the storage's controller: kubectl get pods -A | grep -E 'csi.*(controller|attacher)', "
        "kubectl describe volumeattachment. Is volume {volume} healthy there?"
    ),
    "mount_subpath": "The subPath of volume {volume} cannot be prepared on {node}.",
    "mount_subpath_advice": (
        "Check that the path exists in volume {volume}, is a directory or file as expected, and that the "
        "container's user may create it."
    ),
    "mount_says": "The node says ({count:time|times}): {message}",
    "mount_hung": (
        "The mount {path} on {node} has not responded for {hung:duration}; processes that wait for it cannot be "
        "stopped."
    ),
    "mount_hung_advice": "Bring the server of {path} back. If that is not possible: on {node} umount -f -l {path}",
    "sandbox_disk_full": "{node} cannot start pods: its disk is full.",
    "sandbox_disk_full_advice": (
        "Free space on {node}: df -h shows which disk is full, and gpuwarden cleanup plan shows what can be removed."
    ),
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
    "sidecar_not_started": (
        "Its sidecar {container} has been running for {seconds:duration} without passing its startup probe; the "
        "containers after it wait."
    ),
    "sidecar_not_started_advice": (
        "Check what it is doing: kubectl logs {pod} -n {namespace} -c {container}; kubectl describe pod {pod} "
        "-n {namespace} shows its probe."
    ),
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
    "start_disk_full_advice": (
        "Free space on {node}: df -h shows which disk is full, and gpuwarden cleanup plan shows what can be removed."
    ),
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
    "sandbox_cni_auth": "The network plugin of {node} is not accepted by the API server: its credentials are invalid.",
    "sandbox_cni_auth_advice": (
        "Restart the network plugin's pod on {node}, which renews its kubeconfig in /etc/cni/net.d; then "
        "check the clock and the cluster's certificates."
    ),
    "sandbox_cni_missing": "The network plugin of {node} is not installed or not ready.",
    "sandbox_cni_missing_advice": (
        "Start the network plugin's pod on {node}: kubectl get pods -A -o wide | grep -E "
        "'calico|flannel|cilium'; on the node: ls /etc/cni/net.d /opt/cni/bin"
    ),
    "start_driver_not_loaded": "The GPU driver is not loaded on {node}, so no GPU container starts there.",
    "start_driver_not_loaded_advice": (
        "On {node}: nvidia-smi; modprobe nvidia; dmesg | grep NVRM. If the driver comes from the GPU "
        "operator, check its driver pod. Cordon the node until then."
    ),
    "start_gpu_lost": "A GPU of {node} that the container was given no longer answers.",
    "start_gpu_lost_advice": (
        "Drain {node}, then reset the GPU or reboot: nvidia-smi; dmesg | grep -i xid. Restart the device "
        "plugin so that it no longer offers the GPU."
    ),
    "start_toolkit_broken": "The NVIDIA container toolkit of {node} fails.",
    "start_toolkit_broken_advice": (
        "On {node}: nvidia-container-cli info; nvidia-ctk --version. Reinstall the toolkit, then nvidia-ctk "
        "runtime configure and restart the container runtime."
    ),
    "start_cdi": "The CDI specification of {node} does not describe the device that the container was given.",
    "start_cdi_advice": (
        "On {node}: generate it again (nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; nvidia-ctk cdi "
        "list), then restart the device plugin."
    ),
    "start_device_missing": "A device that container {container} needs does not exist on {node}.",
    "start_device_missing_advice": (
        "On {node}: load the driver of the device that the message names (GPU: nvidia-smi; InfiniBand: ls "
        "/dev/infiniband, modprobe ib_uverbs), and check the card."
    ),
    "start_apparmor": "{node} cannot apply the AppArmor profile of the container.",
    "start_apparmor_advice": (
        "On {node}: load the profile (aa-status; apparmor_parser -r /etc/apparmor.d/PROFILE) or install "
        "AppArmor's tools; or set the pod's AppArmor profile to Unconfined."
    ),
    "start_seccomp": "{node} cannot apply the seccomp profile of the container.",
    "start_seccomp_advice": (
        "Install the profile under /var/lib/kubelet/seccomp on {node}, use RuntimeDefault, or update runc "
        "and libseccomp there."
    ),
    "start_security_profile": "{node} cannot apply the security label (SELinux) of the container.",
    "start_security_profile_advice": (
        "On {node}: getenforce; install container-selinux for this runtime, or correct seLinuxOptions of the pod."
    ),
    "start_keyring": "The kernel's key quota on {node} is used up, so no more containers start there.",
    "start_keyring_advice": (
        "On {node}: sysctl -w kernel.keys.maxkeys=20000 kernel.keys.maxbytes=400000, permanently in /etc/sysctl.d."
    ),
    "start_inotify": "The inotify limits of {node} are used up.",
    "start_inotify_advice": (
        "On {node}: sysctl -w fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=1048576, "
        "permanently in /etc/sysctl.d."
    ),
    "start_pids_limit": "{node} or the pod has reached its limit of processes: nothing more can be started.",
    "start_pids_limit_advice": (
        "Find what forks on {node} (ps -eLf | wc -l), or raise podPidsLimit of the kubelet and kernel.pid_max."
    ),
    "start_node_limit": "A kernel limit of {node} is reached: too many open files.",
    "start_node_limit_advice": (
        "On {node}: sysctl fs.file-nr; raise fs.file-max, or LimitNOFILE of the containerd or docker service."
    ),
    "start_cgroup": "{node} cannot set up the container's cgroup.",
    "start_cgroup_advice": (
        "On {node}: systemctl status containerd; journalctl -u systemd; do kubelet and runtime use the same "
        "cgroup driver? Restart the runtime; if systemd does not answer, reboot the node."
    ),
    "start_memory_limit_low": "The memory limit of container {container} is too small even to start it.",
    "start_memory_limit_low_advice": "Raise limits.memory of {container}; check its unit (Mi and Gi, not m).",
    "start_read_only_root": "A mount point of container {container} is missing, and its root file system is read-only.",
    "start_read_only_root_advice": (
        "Create the directory in the image of {container}, mount the volume elsewhere, or set "
        "readOnlyRootFilesystem to false."
    ),
    "start_sysctl": "A sysctl that the pod sets does not exist on {node} or may not be set.",
    "start_sysctl_advice": "Remove it from securityContext.sysctls, or set it on {node}; hostNetwork forbids net.*.",
    "start_relabel": "{node} may not set the SELinux labels of a volume of container {container}.",
    "start_relabel_advice": "Correct seLinuxOptions of the pod, or mount the storage with the option context=.",
    "start_device_plugin": "The device plugin on {node} found no card with enough room for container {container}.",
    "start_device_plugin_advice": "See the device plugin's log on {node}; ask for less GPU memory or use another node.",
    "start_subpath": "The subPath of a volume of container {container} cannot be prepared.",
    "start_subpath_advice": (
        "Check that the path exists in the volume, is a directory or file as expected, and that the user of "
        "{container} may create it."
    ),
    "start_host_path": "A path of {node} that container {container} mounts does not exist or cannot be created there.",
    "start_host_path_advice": "Create it on {node}, correct the path of the volume, or use a node that has it.",
    "start_mount_spec": "A mount of container {container} is not allowed: its path is invalid or is used twice.",
    "start_mount_spec_advice": "Correct mountPath and volumes of {container}; the message names the mount.",
    "start_mount_dead": (
        "A mount on {node} that container {container} needs is dead: its server or FUSE process is gone."
    ),
    "start_mount_dead_advice": (
        "On {node}: umount -l the path that the message names, or restart the mount pod of its CSI driver; "
        "then delete pod {pod} so that it is mounted again."
    ),
    "start_node_disk": "The disk of {node} fails or is read-only: container {container} cannot be created.",
    "start_node_disk_advice": (
        "On {node}: dmesg | grep -iE 'i/o error|remount|ext4|xfs'. Cordon and drain the node, check or "
        "replace the disk."
    ),
    "start_node_store": "The image store of {node} is inconsistent: content of the image of {container} is gone.",
    "start_node_store_advice": (
        "On {node}: remove the image with its content and pull it again (crictl rmi IMAGE; crictl pull "
        "IMAGE). The image in the registry is fine."
    ),
    "start_user_missing": "The image of container {container} has no such user or group.",
    "start_user_missing_advice": "Use a numeric user id (runAsUser), or add the user to the image of {container}.",
    "start_dra_prepare": "The DRA driver on {node} cannot prepare the devices of the pod's resource claims.",
    "start_dra_prepare_advice": (
        "Look at the DRA driver's plugin on {node}: kubectl get pods -A -o wide | grep -i dra; its log names "
        "the device. Also: kubectl get resourceclaims -n {namespace}"
    ),
    "start_shared": "{count} pods on {node} fail for the same reason: one repair of the node helps them all.",
    "start_other": "Container {container} cannot be started on {node}.",
    "start_other_advice": "Read the message above: kubectl describe pod {pod} -n {namespace}",
}
