"""Chinese: volumes, sandboxes, configuration, and containers that cannot start."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "mount_access_denied": "存储服务器不允许 {node} 挂载 {source}。",
    "mount_access_denied_advice": (
        "在服务器上检查：该路径是否已导出、是否允许 {node} 的地址（exportfs -v）。之后 {source} 会自动挂载。"
    ),
    "mount_no_such_export": "存储服务器上没有路径 {source}。",
    "mount_no_such_export_advice": "在服务器上创建目录，或改正作业里存储卷 {volume} 的路径。",
    "mount_helper_missing": "{node} 不能挂载这种文件系统：没有安装挂载工具。",
    "mount_helper_missing_advice": (
        "在 {node} 上安装 nfs-common（Debian、Ubuntu）或 nfs-utils（CentOS），或对应的客户端。"
    ),
    "mount_unreachable": "{node} 访问不到存储卷 {volume} 的存储（{source}）。",
    "mount_unreachable_advice": (
        "存储服务器在运行吗？在 {node} 上执行：showmount -e SERVER、ping SERVER，再查网络和防火墙。"
    ),
    "mount_stale": "{node} 上 {source} 的挂载已失效（stale）：服务器丢失了节点打开的内容。",
    "mount_stale_advice": "在 {node} 上对该路径执行 umount -f -l，之后会重新挂载。如果很多 Pod 卡住，腾空并重启节点。",
    "mount_multi_attach": "存储卷 {volume} 还挂在另一个节点上，而它只能挂在一个节点上。",
    "mount_multi_attach_advice": (
        "查看哪个 Pod 还在用（kubectl get volumeattachment）。如果那个节点已宕机，删除旧 Pod，约 6 分钟后会解除挂载。"
    ),
    "mount_claim_missing": "存储卷声明（PVC）{name} 在 {namespace} 里不存在。",
    "mount_claim_missing_advice": "创建 PVC {name}，或改正名字：kubectl get pvc -n {namespace}",
    "mount_secret_missing": "它要挂载的 Secret {name} 在 {namespace} 里不存在。",
    "mount_secret_missing_advice": "创建 Secret {name}，或改正名字：kubectl get secret -n {namespace}",
    "mount_config_missing": "它要挂载的 ConfigMap {name} 在 {namespace} 里不存在。",
    "mount_config_missing_advice": "创建 ConfigMap {name}，或改正名字：kubectl get configmap -n {namespace}",
    "mount_key_missing": "存储卷 {volume} 要用的键在 Secret 或 ConfigMap 里没有。",
    "mount_key_missing_advice": "补上这个键，或改正存储卷 {volume} 的 items。",
    "mount_host_path": "{node} 上没有存储卷 {volume} 指定的路径，或类型不符。",
    "mount_host_path_advice": "在 {node} 上创建它，或改正存储卷 {volume} 的路径或类型（Directory、File 等）。",
    "mount_driver_missing": "{node} 上没有运行存储卷 {volume} 的存储驱动（CSI）。",
    "mount_driver_missing_advice": "恢复 {node} 上的驱动 Pod：kubectl get pods -A -o wide | grep csi",
    "mount_disk_full": "{node} 的磁盘满了：存储卷 {volume} 无法准备。",
    "mount_disk_full_advice": (
        "清理 {node} 的磁盘：用 df -h 找出哪块满了，用 gpuwarden cleanup plan 查看可以安全删除什么。"
    ),
    "mount_bad_filesystem": "{node} 无法挂载存储卷 {volume} 的文件系统：已损坏或类型不符。",
    "mount_bad_filesystem_advice": "先在 {node} 上检查设备（dmesg；未挂载时 fsck）。",
    "mount_permission": "{node} 没有权限挂载存储卷 {volume}（{source}）。",
    "mount_permission_advice": "检查 {source} 在服务器上的权限和访问凭据。",
    "mount_timed_out": "存储卷 {volume} 没能及时挂载到 {node}，没有信息说明原因。",
    "mount_timed_out_advice": "在 {node} 上执行：journalctl -u kubelet | grep -i volume。多半是存储服务器没有响应。",
    "mount_unknown": "存储卷 {volume} 无法挂载到 {node}。",
    "mount_unknown_advice": "看上面的信息。更多：在 {node} 上执行 journalctl -u kubelet | grep -i mount",
    "mount_storage_denied": "卷 {volume} 的存储拒绝了 {node}：凭据或权限不被接受。",
    "mount_storage_denied_advice": (
        "检查卷 {volume} 的 Secret 里的密钥，以及该账号在存储上的权限（ceph auth get、bucket 策略、共享权限）。"
    ),
    "mount_volume_missing": "卷 {volume} 指向的内容在存储上不存在（{source}）。",
    "mount_volume_missing_advice": "创建该文件系统、路径或 bucket，或改正卷 {volume} 里的名称。",
    "mount_nfs_unreachable": "{node} 连不上 {source} 的 NFS 服务器。",
    "mount_nfs_unreachable_advice": (
        "{source} 的服务器在运行吗？在 {node} 上执行：ping SERVER；nc -vz SERVER 2049。再检查域名解析、路由和防火墙。"
    ),
    "mount_nfs_refused": "{source} 的服务器拒绝 {node} 的 NFS 连接：NFS 服务没有运行。",
    "mount_nfs_refused_advice": "在服务器上执行：systemctl status nfs-server；之后 {source} 会自动挂载。",
    "mount_attach_limit": "卷 {volume} 无法挂接：{node} 的卷数已达上限。",
    "mount_attach_limit_advice": "把带卷的 Pod 分散到更多节点，或从 {node} 移除不用的卷：kubectl get volumeattachment",
    "mount_attach_failed": "卷 {volume} 无法挂接到 {node}。",
    "mount_attach_failed_advice": (
        "查看存储的控制器：kubectl get pods -A | grep -E 'csi.*(controller|attacher)'，"
        "kubectl describe volumeattachment。卷 {volume} 在那里正常吗？"
    ),
    "mount_subpath": "卷 {volume} 的 subPath 在 {node} 上无法准备。",
    "mount_subpath_advice": "检查该路径在卷 {volume} 里是否存在、类型是否正确，容器的用户是否有权创建。",
    "mount_says": "节点的说法（{count} 次）：{message}",
    "mount_hung": "{node} 上的挂载 {path} 已 {hung:duration}没有响应，等待它的进程停不下来。",
    "mount_hung_advice": "恢复 {path} 的服务器。做不到时：在 {node} 上执行 umount -f -l {path}",
    "sandbox_disk_full": "{node} 无法启动 Pod：磁盘满了。",
    "sandbox_disk_full_advice": (
        "清理 {node} 的磁盘：用 df -h 找出哪块满了，用 gpuwarden cleanup plan 查看可以安全删除什么。"
    ),
    "sandbox_no_address": "{node} 没有空闲的 Pod 地址（IP）了。",
    "sandbox_no_address_advice": "检查 {node} 上 /var/lib/cni/networks 里的残留，或给节点分配更大的 Pod 网段。",
    "sandbox_runtime_class": "{node} 的容器运行时不认识 Pod 要求的 runtimeClass。",
    "sandbox_runtime_class_advice": (
        "在 {node} 上配置该运行时（nvidia-ctk runtime configure，然后重启），或去掉 runtimeClassName。"
    ),
    "sandbox_pause_image": "{node} 无法启动任何 Pod：pause 镜像丢失，又拉取不到。",
    "sandbox_pause_image_advice": (
        "在 {node} 上拉取或导入 pause 镜像（名字见 kubelet 和 containerd 的 sandbox_image）。可能是清理时删掉的："
        "crictl rmi --prune 会删除它。"
    ),
    "sandbox_network": "{node} 无法给 Pod 配置网络（CNI）。",
    "sandbox_network_advice": (
        "检查 {node} 上的网络插件 Pod：kubectl get pods -A -o wide | grep -E 'calico|flannel|cilium'"
    ),
    "sandbox_runtime_slow": "{node} 的容器运行时没有及时响应。",
    "sandbox_runtime_slow_advice": "{node} 负载过高或运行时卡住：systemctl status containerd docker；检查磁盘 I/O。",
    "sandbox_other": "{node} 无法创建 Pod 的沙箱。",
    "sandbox_other_advice": "看上面的信息。更多：在 {node} 上执行 journalctl -u kubelet -u containerd",
    "pause_pull": "拉取不到的原因：{cause:code}。",
    "runtime_says": "节点的说法：{message}",
    "config_object_missing": "容器 {container} 需要的 {kind} {name} 在 {namespace} 里不存在。",
    "config_object_missing_advice": "在 {namespace} 里创建 {kind} {name}，或改正作业里的名字。",
    "config_key_missing": "{kind} {name} 里没有容器 {container} 需要的键 {key}。",
    "config_key_missing_advice": "在 {namespace} 的 {kind} {name} 里补上 {key}，或改正作业。",
    "config_root": "容器 {container} 要以 root 运行，而 Pod 禁止这样做（runAsNonRoot）。",
    "config_root_advice": "把 runAsUser 设为大于 0 的数，或使用以其他用户运行的镜像。",
    "config_other": "容器 {container} 的配置有误，无法创建。",
    "config_other_advice": "看上面的信息：kubectl describe pod {pod} -n {namespace}",
    "start_node_not_ready": "它所在的节点 {node} 不可用（NotReady），无法启动它。",
    "start_normal": "正在 {node} 上启动，已用 {seconds:duration}，属正常情况。",
    "start_normal_advice": "两分钟后再看：kubectl get pod {pod} -n {namespace}",
    "start_long": "它早该在 {node} 上启动了（已 {seconds:duration}），没有信息说明原因。",
    "start_long_advice": (
        "kubectl describe pod {pod} -n {namespace}；在 {node} 上执行：journalctl -u kubelet | grep {pod}"
    ),
    "init_running": "它的初始化容器 {container} 还在运行，已用 {seconds:duration}。",
    "init_running_advice": "看它在做什么：kubectl logs {pod} -n {namespace} -c {container}",
    "sidecar_not_started": (
        "它的 sidecar 容器 {container} 已运行 {seconds:duration}，但启动探针还没有通过；排在后面的容器都在等它。"
    ),
    "sidecar_not_started_advice": (
        "看它在做什么：kubectl logs {pod} -n {namespace} -c {container}；"
        "探针见 kubectl describe pod {pod} -n {namespace}"
    ),
    "start_driver_mismatch": "{node} 的 GPU 驱动升级后没有重启：内核模块和库的版本不一致。",
    "start_driver_mismatch_advice": "腾空并重启 {node}（或重新加载 nvidia 模块）。在那之前那里启动不了 GPU 作业。",
    "start_driver_too_old": "{container} 的镜像需要比 {node} 更新的 GPU 驱动。",
    "start_driver_too_old_advice": "换用 CUDA 版本较低的镜像，或升级 {node} 的驱动。",
    "start_driver_broken": "{node} 上的 GPU 驱动或容器工具包不能正常工作。",
    "start_driver_broken_advice": (
        "在 {node} 上执行：nvidia-smi；nvidia-container-cli info；dmesg | grep NVRM。修好之前先 cordon 该节点。"
    ),
    "start_runtime_broken": "{node} 的容器运行时配置有误：它执行不了自己的组件。",
    "start_runtime_broken_advice": "在 {node} 上检查运行时配置里的 nvidia runtime，以及该文件是否可执行。",
    "start_disk_full": "{node} 的磁盘满了：容器 {container} 无法创建。",
    "start_disk_full_advice": (
        "清理 {node} 的磁盘：用 df -h 找出哪块满了，用 gpuwarden cleanup plan 查看可以安全删除什么。"
    ),
    "start_exec_format": "容器 {container} 的程序无法执行：它是为其他处理器构建的，或脚本首行缺少 #!。",
    "start_exec_format_advice": "为该架构构建镜像；脚本首行写上 #!/bin/bash。",
    "start_hook": "容器 {container} 的启动钩子失败。",
    "start_hook_advice": "检查作业的 lifecycle.postStart：kubectl describe pod {pod} -n {namespace}",
    "start_workdir": "容器 {container} 的工作目录不存在。",
    "start_workdir_advice": "改正 workingDir，或挂载包含它的存储卷。",
    "start_mount_kind": "容器 {container} 的挂载不匹配：该是目录的地方是文件，或相反。",
    "start_mount_kind_advice": "检查各存储卷的 mountPath 和 subPath。",
    "start_not_executable": "容器 {container} 的启动文件没有执行权限：{file}。",
    "start_not_executable_advice": "加上执行权限（chmod +x {file}），或用解释器启动：bash {file}",
    "start_no_start_file": "找不到容器 {container} 的启动文件：{file}。",
    "start_no_start_file_advice": "检查命令和路径（{file}）：它在镜像里吗？或在已挂载的存储卷上吗？",
    "start_runtime_slow": "{node} 的容器运行时没有及时响应。",
    "start_runtime_slow_advice": "{node} 负载过高或运行时卡住：systemctl status containerd docker；检查磁盘 I/O。",
    "sandbox_cni_auth": "API server 不接受 {node} 上网络插件的凭据。",
    "sandbox_cni_auth_advice": (
        "重启 {node} 上网络插件的 Pod，它会更新 /etc/cni/net.d 里的 kubeconfig；再检查时钟和集群证书。"
    ),
    "sandbox_cni_missing": "{node} 上的网络插件没有安装或尚未就绪。",
    "sandbox_cni_missing_advice": (
        "启动 {node} 上网络插件的 Pod：kubectl get pods -A -o wide | grep -E 'calico|flannel|cilium'；在节点"
        "上：ls /etc/cni/net.d /opt/cni/bin"
    ),
    "start_driver_not_loaded": "{node} 上没有加载 GPU 驱动，GPU 容器无法启动。",
    "start_driver_not_loaded_advice": (
        "在 {node} 上执行：nvidia-smi；modprobe nvidia；dmesg | grep NVRM。若驱动由 GPU operator 安装，检查其"
        "驱动 Pod。修好前先封锁节点。"
    ),
    "start_gpu_lost": "分配给容器的 GPU 在 {node} 上已不响应。",
    "start_gpu_lost_advice": (
        "腾空 {node}，然后重置 GPU 或重启：nvidia-smi；dmesg | grep -i xid。重启设备插件，让它不再提供该 GPU。"
    ),
    "start_toolkit_broken": "{node} 上的 NVIDIA container toolkit 出错。",
    "start_toolkit_broken_advice": (
        "在 {node} 上执行：nvidia-container-cli info；nvidia-ctk --version。重装 toolkit，再执行"
        " nvidia-ctk runtime configure 并重启容器运行时。"
    ),
    "start_cdi": "{node} 的 CDI 规范里没有分配给容器的设备。",
    "start_cdi_advice": (
        "在 {node} 上重新生成（nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml；nvidia-ctk cdi list），"
        "再重启设备插件。"
    ),
    "start_device_missing": "容器 {container} 需要的设备在 {node} 上不存在。",
    "start_device_missing_advice": (
        "在 {node} 上加载信息里提到的设备的驱动（GPU：nvidia-smi；InfiniBand：ls /dev/infiniband、"
        "modprobe ib_uverbs），并检查设备。"
    ),
    "start_apparmor": "{node} 无法应用容器的 AppArmor 配置。",
    "start_apparmor_advice": (
        "在 {node} 上加载该配置（aa-status；apparmor_parser -r /etc/apparmor.d/PROFILE）或安装 AppArmor 工具"
        "；或把 Pod 的 AppArmor 配置设为 Unconfined。"
    ),
    "start_seccomp": "{node} 无法应用容器的 seccomp 配置。",
    "start_seccomp_advice": (
        "把该配置放到 {node} 的 /var/lib/kubelet/seccomp，改用 RuntimeDefault，或升级那里的 runc 和 libseccomp。"
    ),
    "start_security_profile": "{node} 无法应用容器的安全标签（SELinux）。",
    "start_security_profile_advice": (
        "在 {node} 上执行：getenforce；安装与运行时匹配的 container-selinux，或改正 Pod 的 seLinuxOptions。"
    ),
    "start_keyring": "{node} 的内核密钥配额已用完，无法再启动容器。",
    "start_keyring_advice": (
        "在 {node} 上执行：sysctl -w kernel.keys.maxkeys=20000 kernel.keys.maxbytes=400000，并写入 /etc/sysctl.d。"
    ),
    "start_inotify": "{node} 的 inotify 上限已用完。",
    "start_inotify_advice": (
        "在 {node} 上执行：sysctl -w fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=1048576，"
        "并写入 /etc/sysctl.d。"
    ),
    "start_pids_limit": "{node} 或该 Pod 的进程数已达上限，无法再启动新进程。",
    "start_pids_limit_advice": (
        "在 {node} 上找出大量创建进程的程序（ps -eLf | wc -l），或调大 kubelet 的 podPidsLimit 和 kernel.pid_max。"
    ),
    "start_node_limit": "{node} 的内核限制已达上限：打开的文件过多。",
    "start_node_limit_advice": (
        "在 {node} 上执行：sysctl fs.file-nr；调大 fs.file-max，或 containerd、docker 服务的 LimitNOFILE。"
    ),
    "start_cgroup": "{node} 无法建立容器的 cgroup。",
    "start_cgroup_advice": (
        "在 {node} 上执行：systemctl status containerd；journalctl -u systemd；kubelet 和运行时的 cgroup 驱动"
        "一致吗？重启运行时；若 systemd 无响应，重启节点。"
    ),
    "start_memory_limit_low": "容器 {container} 的内存上限太小，连启动都不够。",
    "start_memory_limit_low_advice": "调大 {container} 的 limits.memory，并检查单位（Mi、Gi，而不是 m）。",
    "start_read_only_root": "容器 {container} 缺少挂载点，而它的根文件系统是只读的。",
    "start_read_only_root_advice": (
        "在 {container} 的镜像里创建该目录，把卷挂到别处，或把 readOnlyRootFilesystem 设为 false。"
    ),
    "start_sysctl": "Pod 设置的某个 sysctl 在 {node} 上不存在，或不允许设置。",
    "start_sysctl_advice": "从 securityContext.sysctls 中去掉它，或在 {node} 上设置；hostNetwork 下不能设置 net.*。",
    "start_relabel": "{node} 无权设置容器 {container} 的存储卷的 SELinux 标签。",
    "start_relabel_advice": "修改 Pod 的 seLinuxOptions，或使用支持标签的存储（挂载选项 context=）。",
    "start_device_plugin": "{node} 上的设备插件没有找到能容纳容器 {container} 的卡。",
    "start_device_plugin_advice": "查看 {node} 上设备插件的日志；减少申请的显存，或换一个节点。",
    "start_subpath": "容器 {container} 的卷的 subPath 无法准备。",
    "start_subpath_advice": "检查该路径在卷里是否存在、类型是否正确，{container} 的用户是否有权创建。",
    "start_host_path": "容器 {container} 要挂载的路径在 {node} 上不存在，也无法创建。",
    "start_host_path_advice": "在 {node} 上创建它，改正卷的路径，或使用有该路径的节点。",
    "start_mount_spec": "容器 {container} 的某个挂载不合规：路径无效或重复。",
    "start_mount_spec_advice": "改正 {container} 的 mountPath 和卷；信息里写明了是哪个挂载。",
    "start_mount_dead": "容器 {container} 需要的挂载在 {node} 上已失效：服务器或 FUSE 进程已不在。",
    "start_mount_dead_advice": (
        "在 {node} 上对信息里的路径执行 umount -l，或重启 CSI 驱动的挂载 Pod；然后删除 Pod {pod}，让它重新挂载。"
    ),
    "start_node_disk": "{node} 的磁盘出错或变成只读：容器 {container} 无法创建。",
    "start_node_disk_advice": (
        "在 {node} 上执行：dmesg | grep -iE 'i/o error|remount|ext4|xfs'。封锁并腾空节点，检查或更换磁盘。"
    ),
    "start_node_store": "{node} 的镜像存储不一致：{container} 的镜像内容已不在。",
    "start_node_store_advice": (
        "在 {node} 上删除该镜像及其内容后重新拉取（crictl rmi IMAGE；crictl pull IMAGE）。仓库里的镜像没有问题。"
    ),
    "start_user_missing": "容器 {container} 的镜像里没有该用户或用户组。",
    "start_user_missing_advice": "使用数字用户 ID（runAsUser），或在 {container} 的镜像里添加该用户。",
    "start_dra_prepare": "{node} 上的 DRA 驱动无法准备 Pod 的资源声明所要的设备。",
    "start_dra_prepare_advice": (
        "查看 {node} 上的 DRA 驱动：kubectl get pods -A -o wide | grep -i dra；它的日志会指出设备。另见："
        "kubectl get resourceclaims -n {namespace}"
    ),
    "start_shared": "{node} 上有 {count} 个 Pod 因同样的原因失败：修好这个节点即可全部恢复。",
    "start_other": "容器 {container} 无法在 {node} 上启动。",
    "start_other_advice": "看上面的信息：kubectl describe pod {pod} -n {namespace}",
}
