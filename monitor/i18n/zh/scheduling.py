"""Chinese: why schedulers and queue controllers do not place a pod, in their own words."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "sched_device_claim": "它的资源声明要的设备无法分配：没有空闲且匹配的设备。",
    "sched_device_claim_advice": (
        "释放设备，或放宽声明的选择条件：kubectl get resourceclaims -n {namespace}；kubectl get resourceslices"
    ),
    "sched_device_claim_missing": "它引用的资源声明或其模板不存在。",
    "sched_device_claim_missing_advice": (
        "创建它或改正名称：kubectl get resourceclaims,resourceclaimtemplates -n {namespace}"
    ),
    "sched_device_claim_driver": "DRA 驱动没有给它的资源声明分配设备。",
    "sched_device_claim_driver_advice": (
        "查看驱动的控制器及其日志：kubectl get pods -A | grep -i dra；kubectl get resourceclaims -n {namespace}"
    ),
    "sched_device_class_missing": "它的资源声明所用的 DeviceClass 不存在。",
    "sched_device_class_missing_advice": "安装 DRA 驱动或改正名称：kubectl get deviceclasses",
    "sched_volume_limit": "节点上挂接的卷数已达上限。",
    "sched_volume_limit_advice": "把带卷的 Pod 分散到更多节点，或移除不用的卷：kubectl get volumeattachment",
    "sched_vgpu_unfit": "vGPU 调度器说：没有节点的 GPU 能满足它的共享 GPU 申请。",
    "sched_vgpu_unfit_advice": (
        "事件 FilteringFailed 会说明每个节点的原因：kubectl describe pod {pod} -n {namespace}。少申请一些显存"
        "或算力，或等待。"
    ),
    "shares_requested": "它申请了 {needs:gpus}。",
    "sched_vgpu_card": "vGPU 调度器说：它要的 GPU 型号或 UUID 与节点不符。",
    "sched_vgpu_card_advice": (
        "改正它的注解 nvidia.com/use-gputype、nouse-gputype、use-gpuuuid 或 nouse-gpuuuid："
        "kubectl get pod {pod} -n {namespace} -o yaml"
    ),
    "sched_vgpu_memory": "没有一张 GPU 有足够的未分配显存。",
    "sched_vgpu_memory_advice": "减少申请的显存，或等其他 Pod 结束。调度器按已分配而不是已使用的显存计算。",
    "sched_vgpu_cores": "没有一张 GPU 有足够的未分配算力。",
    "sched_vgpu_cores_advice": "减少申请的算力，或等其他 Pod 结束。",
    "sched_vgpu_slots": "每张 GPU 上的共享任务数都已达上限。",
    "sched_vgpu_slots_advice": "等 Pod 结束，或调大 vGPU 设备插件的 deviceSplitCount。",
    "sched_vgpu_unregistered": "节点没有在 vGPU 调度器里注册。",
    "sched_vgpu_unregistered_advice": (
        "在节点上启动 vGPU 设备插件：kubectl get pods -A -o wide | grep -i hami；若它按标签选择节点，给节点加"
        "标签（gpu=on）。"
    ),
    "sched_quota": "调度器给它的配额已用完。",
    "sched_quota_advice": "等团队的其他作业结束，少申请一些，或请管理员调大配额。",
    "sched_queue_full": "队列放不下它：队列的配额都在使用中。",
    "sched_queue_full_advice": "等队列里的作业结束，少申请一些，或请管理员调大队列配额。",
    "sched_cluster_full": "集群资源已许诺给其他作业，队列暂时不接纳它。",
    "sched_cluster_full_advice": "等待，并删除已不存在的作业留下的 pod group：kubectl get podgroup -A",
    "sched_queue_too_small": "它申请的资源超过了队列能给的上限。",
    "sched_queue_too_small_advice": "少申请一些，换一个队列，或请管理员调大队列配额。",
    "sched_queue_closed": "队列已关闭或停用：新作业不会在那里启动。",
    "sched_queue_closed_advice": (
        "打开队列（Volcano：vcctl queue operate -a open；Kueue：stopPolicy 设为 None，且引用的 flavor 必须存"
        "在），或换一个队列。"
    ),
    "sched_queue_missing": "队列不存在，或不接受它。",
    "sched_queue_missing_advice": "创建队列或改正作业里的队列名；命名空间必须有权使用它。",
    "sched_queue_topology": "它要求的拓扑没有存在且放得下的域。",
    "sched_queue_topology_advice": (
        "给节点打标签或解除封锁，让该层级存在（kubectl get nodes -L LABEL），允许更宽的层级（"
        "podset-preferred-topology），或使用带 topology 的 flavor。光等没有用。"
    ),
    "sched_queue_uncovered": "队列没有覆盖它申请的某种资源。",
    "sched_queue_uncovered_advice": (
        "请管理员把信息里提到的资源加进 ClusterQueue 的 coveredResources，或从作业里去掉它。"
    ),
    "sched_queued": "调度器 {scheduler} 已让它排队，没有给出更多原因。",
    "sched_queued_advice": "查看它的队列在 {scheduler} 里的剩余容量；调度器本身正常。",
    "sched_gang_incomplete": "它所在的组不完整：已有的 Pod 少于启动所需。",
    "sched_gang_incomplete_advice": (
        "查清缺少的 Pod 为什么没有创建：kubectl get events -n {namespace}。或调小组的最小数量（minAvailable、"
        "minMember）。"
    ),
    "sched_gang_waiting": "组里的 Pod 都在，但不能同时放下。",
    "sched_gang_waiting_advice": "等待资源，或用更少的 worker 提交：gpuwarden status",
    "sched_bad_node": "调度器说：它必须使用的节点状态异常。",
    "sched_bad_node_advice": "修复信息里提到的节点：kubectl describe node NODE",
    "sched_disk_pressure": "它可用的节点磁盘已满（disk pressure）。",
    "sched_disk_pressure_advice": "清理这些节点的磁盘，污点会自动消失：kubectl describe nodes | grep -A5 DiskPressure",
    "sched_memory_pressure": "它可用的节点内存不足（memory pressure）。",
    "sched_memory_pressure_advice": "找出占用这些节点内存的程序，污点会自动消失：kubectl top pods -A --sort-by=memory",
    "sched_not_ready": "它可用的节点未就绪或无法连接。",
    "sched_not_ready_advice": "修复节点：kubectl get nodes；kubectl describe node NODE。污点会自动消失。",
    "sched_taint": "节点有它不容忍的污点：{name}。",
    "sched_taint_advice": "如果作业可以在那里运行，就加上对 {name} 的容忍；否则使用其他节点。",
    "sched_cordoned": "它可用的节点都被封锁（cordon）。",
    "sched_cordoned_advice": "维护结束后重新开放：kubectl uncordon NODE",
    "sched_selector": "没有节点符合它的节点选择器或节点亲和性。",
    "sched_selector_advice": "改正作业的 nodeSelector 或 nodeAffinity，或给节点打标签：kubectl get nodes --show-labels",
    "sched_gpus": "调度器说：它能用的 {name} 都被占用。",
    "sched_gpus_advice": "等待，或减少申请量后提交。谁在占用：gpuwarden status",
    "sched_cpu": "调度器说：没有节点有足够的空闲 CPU。",
    "sched_cpu_advice": "少申请一些 CPU，或等其他 Pod 结束：kubectl describe nodes | grep -A8 Allocated",
    "sched_memory": "调度器说：没有节点有足够的空闲内存。",
    "sched_memory_advice": "少申请一些内存，或等其他 Pod 结束：kubectl describe nodes | grep -A8 Allocated",
    "sched_ephemeral_storage": "没有节点有足够的空闲本地磁盘（ephemeral-storage）。",
    "sched_ephemeral_storage_advice": "少申请一些 ephemeral-storage，改写到存储卷，或给节点加磁盘。",
    "sched_pods": "节点的 Pod 数已达上限。",
    "sched_pods_advice": "删除已结束的 Pod，或调大 kubelet 的 maxPods。",
    "sched_resource": "没有节点能提供足够的 {name}。",
    "sched_resource_advice": "检查作业里的 {name} 是否写对。若没错，启动提供它的设备插件，或等已分出的份额释放。",
    "gang_unsaid": "它的 pod group 在等待，虽然 Pod 都在；调度器没有说明原因。",
    "gang_unsaid_advice": "先检查 PVC {claim} 是否存在并已绑定：kubectl get pvc -n {namespace}。再看调度器的日志。",
    "pod_affinity_advice": "放宽作业的 Pod 亲和或反亲和规则，或增加节点。",
    "host_ports_advice": "在某个节点上释放该端口，或从作业里去掉 hostPort（或 hostNetwork）。",
    "topology_spread_advice": "给节点打上约束里 topologyKey 的标签，或放宽约束：whenUnsatisfiable: ScheduleAnyway。",
}
