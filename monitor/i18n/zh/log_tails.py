"""Chinese: failures that the end of a container's log proves."""

from __future__ import annotations

_LOG = "kubectl logs {pod} -n {namespace} -c {container} --previous"

WORDS: dict[str, str] = {
    "crash_cuda_illegal_access": "容器 {container} 里的程序出错：GPU kernel 访问了不该访问的显存。",
    "crash_cuda_illegal_access_advice": (
        "调试程序或 CUDA 扩展（CUDA_LAUNCH_BLOCKING=1）。只有当 {node} 同一张 GPU 上其他作业也失败时，才查看 XID："
        "gpuwarden status"
    ),
    "crash_cuda_assert": "容器 {container} 里的程序出错：GPU kernel 的断言失败，例如索引或标签越界。",
    "crash_cuda_assert_advice": "修正程序或数据，GPU 没有问题。CUDA_LAUNCH_BLOCKING=1 可以定位出错的操作。",
    "crash_cuda_arch": "容器 {container} 里的程序不支持 {node} 的 GPU 型号。",
    "crash_cuda_arch_advice": "换用支持该 GPU 的框架或扩展版本，或换一种 GPU。",
    "crash_gpu_ecc": "容器 {container} 遇到 {node} 的 GPU 显存不可纠正错误（ECC）。",
    "crash_gpu_ecc_advice": "重置 {node} 的这张 GPU；如果再次出现就更换。gpuwarden status 会显示是哪张 GPU。",
    "crash_gpu_lost": "容器 {container} 在 {node} 上失去了 GPU。",
    "crash_gpu_lost_advice": (
        "重启 Pod。如果 {node} 上 nvidia-smi 也失败，排空并重启该节点；如果正常，修正容器运行时的配置（systemd "
        "cgroup）。"
    ),
    "crash_gpu_error": "容器 {container} 里的 CUDA 操作失败，可能是 GPU 的问题，也可能是程序的问题。",
    "crash_gpu_error_advice": "先查看 {node} 的 XID（gpuwarden status；dmesg | grep NVRM），再检查程序。",
    "crash_gpu_driver": "容器 {container} 用不了 {node} 的 NVIDIA 驱动。",
    "crash_gpu_driver_advice": "在 {node} 上执行 nvidia-smi；检查驱动，有 NVSwitch 时还要检查 fabric manager。",
    "crash_driver_too_old": "{node} 的 NVIDIA 驱动对容器 {container} 的镜像来说太旧。",
    "crash_driver_too_old_advice": "升级 {node} 的驱动，或使用 CUDA 版本较低的镜像。",
    "crash_driver_mismatch": "容器 {container} 在 {node} 上遇到 NVIDIA 内核模块与库版本不一致。",
    "crash_driver_mismatch_advice": "如果 {node} 升级驱动后没有重启，请重启；否则从镜像中删除 CUDA 兼容库（compat）。",
    "crash_driver_not_loaded": "容器 {container} 在 {node} 上看不到 GPU 或 NVIDIA 驱动。",
    "crash_driver_not_loaded_advice": (
        "确认 Pod 申请了 GPU 且 CUDA_VISIBLE_DEVICES 不为空；再在 {node} 上用 nvidia-smi 检查驱动。"
    ),
    "crash_host_memory": "容器 {container} 里的程序内存不够。",
    "crash_host_memory_advice": "提高 {container} 的 limits.memory，或减少使用：减少数据加载进程、减小数组。",
    "crash_native_crash": "容器 {container} 里的程序因段错误崩溃。",
    "crash_native_crash_advice": (
        "原生库出错：检查框架、CUDA 和扩展的版本是否匹配。如果 {node} 上其他作业也崩溃，检查该节点的内存。"
    ),
    "crash_pids_limit": "容器 {container} 里的程序无法创建进程或线程：已达上限。",
    "crash_pids_limit_advice": "减少进程和线程（OMP_NUM_THREADS），或提高 {node} 上 kubelet 的 podPidsLimit。",
    "crash_open_files": "容器 {container} 里的程序打开的文件数达到上限。",
    "crash_open_files_advice": (
        "提高容器运行时的 nofile，少打开文件，或使用 torch.multiprocessing.set_sharing_strategy('file_system')。"
    ),
    "crash_node_limit": "容器 {container} 里的程序达到了 {node} 的内核限制。",
    "crash_node_limit_advice": "在 {node} 上提高日志中指出的限制（sysctl）。",
    "crash_nccl": "容器 {container} 里的集合通信（NCCL）失败。",
    "crash_nccl_advice": "找到最先失败的 rank 并查看它的日志；设置 NCCL_DEBUG=INFO 可看到 NCCL 自己的信息。",
    "crash_nccl_timeout": "容器 {container} 里的集合通信超时：有 rank 没有到达。",
    "crash_nccl_timeout_advice": "找到最先停下的 rank 并查看它的日志；再检查节点之间的网络。",
    "crash_nccl_peer": "容器 {container} 与同一作业的另一个 rank 断开了连接。",
    "crash_nccl_peer_advice": "查看最先结束的 rank 的日志；如果都没有结束，检查对方节点的网口。",
    "crash_nccl_system": "容器 {container} 里 NCCL 的系统调用失败。",
    "crash_nccl_system_advice": "检查网卡（NCCL_SOCKET_IFNAME）、memlock 限制和 NCCL 自己的信息（NCCL_DEBUG=INFO）。",
    "crash_nccl_cuda": "容器 {container} 里 NCCL 的 CUDA 调用失败。",
    "crash_nccl_cuda_advice": "查看 NCCL 自己的信息（NCCL_DEBUG=INFO）和 {node} 的 XID：gpuwarden status",
    "crash_rank_failed": "容器 {container} 里作业的一个进程失败，日志末尾没有它的错误。",
    "crash_rank_failed_advice": "查看最先失败的 rank 的日志，其他 rank 的错误是后果：" + _LOG,
    "crash_read_only": "容器 {container} 里的程序出错：文件系统只读，无法写入。",
    "crash_read_only_advice": "写到可写的存储卷，或以可写方式挂载（readOnly、readOnlyRootFilesystem）。",
    "crash_disk_full": "容器 {container} 里的程序出错：写入的位置没有空间了。",
    "crash_disk_full_advice": "清理程序写入的存储卷，或写到别处。",
    "crash_disk_quota": "容器 {container} 里的程序出错：用户或项目的磁盘配额已用完。",
    "crash_disk_quota_advice": "删除文件，或提高配额。",
    "crash_storage_io": "容器 {container} 里的程序出错：存储返回 I/O 错误。",
    "crash_storage_io_advice": "检查存储服务器、挂载和 {node} 的磁盘：dmesg -T | tail",
    "crash_mount_dead": "容器 {container} 里的程序出错：{node} 上的一个挂载已失效。",
    "crash_mount_dead_advice": "重启 Pod 以重新挂载；如果是 FUSE，先重启它的挂载 Pod。",
    "crash_missing_symbol": "容器 {container} 里的程序出错：镜像里缺少共享库或符号。",
    "crash_missing_symbol_advice": "使用相互匹配的版本：框架、CUDA、C 库和扩展。",
    "crash_dns": "容器 {container} 里的程序出错：域名无法解析。",
    "crash_dns_advice": "更正域名，或检查集群 DNS 以及 Pod 能否访问外网。",
    "crash_refused": "容器 {container} 里的程序出错：服务器拒绝连接。",
    "crash_refused_advice": "启动该地址上的服务，或更正地址。",
    "crash_timeout": "容器 {container} 里的程序出错：服务器没有响应。",
    "crash_timeout_advice": "确认服务器在运行，并检查从 {node} 到它的网络策略和路由。",
    "crash_http": "容器 {container} 里的程序出错：模型库或对象存储拒绝了请求。",
    "crash_http_advice": "检查对象或仓库的名称，以及 Pod 的凭据。",
    "crash_http_denied": "容器 {container} 里的程序出错：模型库或对象存储不接受它的凭据。",
    "crash_http_denied_advice": "为 Pod 提供有权访问该对象或仓库的有效凭据。",
    "crash_http_missing": "容器 {container} 里的程序出错：对象或仓库不存在。",
    "crash_http_missing_advice": "更正模型、数据集或对象的名称。",
    "crash_http_error": "容器 {container} 里的程序出错：模型库或对象存储发生故障。",
    "crash_http_error_advice": "稍后重试，或缓存文件；如果是自己的服务器，请检查它。",
    "crash_rate_limited": "容器 {container} 里的程序出错：模型库或对象存储限制了请求频率。",
    "crash_rate_limited_advice": "登录、缓存文件，或减少同时启动的进程。",
    "crash_arguments": "容器 {container} 的命令行不正确。",
    "crash_arguments_advice": "更正命令的参数。",
    "crash_bad_executable": "容器 {container} 启动的程序无法执行。",
    "crash_bad_executable_advice": "加上执行权限（chmod +x），或使用适合 {node} 架构的版本。",
    "crash_asked_to_stop": "容器 {container} 里的程序被要求停止（信号）。",
    "crash_asked_to_stop_advice": "不是程序的错误：kubectl get events -n {namespace}",
    "crash_python_exception": "容器 {container} 里的程序抛出 {exception}（退出码 {code}）。",
    "crash_python_exception_advice": "修正程序、数据或配置：" + _LOG,
    "log_says": "它的日志：{message}",
    "first_rank": "rank {rank} 最先失败，其他 rank 的错误是后果。",
    "first_failed_pod": "同一作业的 Pod {first} 最先失败，在 {first_node} 上：gpuwarden why {first}",
}
