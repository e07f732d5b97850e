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
    "mount_disk_full_advice": "清理 {node} 的磁盘：df -h，然后清理旧镜像和日志。",
    "mount_bad_filesystem": "{node} 无法挂载存储卷 {volume} 的文件系统：已损坏或类型不符。",
    "mount_bad_filesystem_advice": "先在 {node} 上检查设备（dmesg；未挂载时 fsck）。",
    "mount_permission": "{node} 没有权限挂载存储卷 {volume}（{source}）。",
    "mount_permission_advice": "检查 {source} 在服务器上的权限和访问凭据。",
    "mount_timed_out": "存储卷 {volume} 没能及时挂载到 {node}，没有信息说明原因。",
    "mount_timed_out_advice": "在 {node} 上执行：journalctl -u kubelet | grep -i volume。多半是存储服务器没有响应。",
    "mount_unknown": "存储卷 {volume} 无法挂载到 {node}。",
    "mount_unknown_advice": "看上面的信息。更多：在 {node} 上执行 journalctl -u kubelet | grep -i mount",
    "mount_says": "节点的说法（{count} 次）：{message}",
    "mount_hung": "{node} 上的挂载 {path} 已 {hung:duration}没有响应，等待它的进程停不下来。",
    "mount_hung_advice": "恢复 {path} 的服务器。做不到时：在 {node} 上执行 umount -f -l {path}",
    "sandbox_disk_full": "{node} 无法启动 Pod：磁盘满了。",
    "sandbox_disk_full_advice": "清理 {node} 的磁盘：df -h，然后清理旧镜像和日志。",
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
    "start_disk_full_advice": "清理 {node} 的磁盘：df -h，然后清理旧镜像和日志。",
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
    "start_other": "容器 {container} 无法在 {node} 上启动。",
    "start_other_advice": "看上面的信息：kubectl describe pod {pod} -n {namespace}",
}
