"""Chinese: why no node takes a pod, and who came first."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "no_nodes": "没有看到集群里的任何节点。",
    "no_nodes_advice": "检查能否读取集群：kubectl get nodes",
    "no_gpu_nodes": "没有节点提供 {resource}。",
    "no_gpu_nodes_advice": (
        "检查作业里的资源名 {resource}，以及节点上的 GPU 设备插件是否在运行：kubectl get pods -A | grep device-plugin"
    ),
    "no_single_node_fits": (
        "单机没有足够的空闲资源：需要 {needs:gpus}，单个节点最多空闲 {most}（{node}），但集群共空闲 {free}，"
        "分布在 {nodes} 个节点上。"
    ),
    "never_on_one_node": (
        "它要求单机 {needs:gpus}，这样永远无法运行：最大的节点（{node}）只有 {largest}。集群目前共空闲 {free}。"
    ),
    "distribute": (
        "请选择“分布式训练”提交：{workers} x {count}（{workers} 个 worker，每个 {each:gpus}），现在就能启动。"
    ),
    "smaller_workers": "减少每个 worker 的 GPU、增加 worker 数量：改成 {workers} x {each:gpus}，现在就能启动。",
    "distribute_later": "请选择“分布式训练”，每个 worker 最多 {largest:gpus}；目前空闲的不够，仍需等待。",
    "or_wait_for_node": "或者等待某个节点空出 {needs:gpus}。",
    "free_map": "各节点空闲：{nodes}。",
    "not_enough_gpus": "空闲的不够：需要 {needs:gpus}；它能使用的 {nodes} 个节点共 {total}，空闲 {free}。",
    "top_holders": "这些节点主要被以下用户占用：{holders}。",
    "gpus_leaving": "这些 Pod 结束后会释放 {count:gpus}：{pods}。",
    "gpus_idle": "有 {count} 张 GPU 被占着但没有使用：{holders}。",
    "gpus_stuck": "有 {count} 张 GPU 被已不再运行的 Pod 或进程占用：{nodes}。",
    "release_idle": "请闲置 GPU 的所有者停掉作业。详情：gpuwarden status",
    "release_stuck": "管理员可以释放被僵死作业占住的 GPU。详情：gpuwarden status",
    "wait_or_ask_less": "等待，或减少申请量后重新提交。",
    "room_cordoned": "有空位但暂停接收新 Pod（cordon）：{nodes}。重新开放：kubectl uncordon NODE",
    "room_not_ready": "有空位但节点不可用（NotReady）：{nodes}。{detail}",
    "room_tainted": "有空位但被预留（污点 {detail}）：{nodes}。",
    "room_not_selected": "有空位但不符合这个 Pod 的要求（{detail}）：{nodes}。",
    "taint": "能放下它的节点都被污点预留，而它没有对应的容忍（{taint}）：{nodes}（{count} 个节点）。",
    "taint_advice": (
        "如果作业应该跑在 {nodes} 上，给它加上对 {taint} 的容忍（toleration）。如果这些节点应对所有人开放：kubectl "
        "taint nodes NODE {taint}-"
    ),
    "taint_disk_advice": (
        "{nodes} 的磁盘满了（{taint}）。清理那里的空间（镜像、日志、旧数据），污点会自动消失；不要去容忍它。"
    ),
    "taint_trouble_advice": (
        "{nodes} 出了问题，所以 Kubernetes 加了 {taint}：kubectl describe node NODE。请修复节点，不要去容忍这个污点。"
    ),
    "selector": "它要求 {wanted}，而容量够大的 {count} 个节点都不符合。",
    "selector_advice": (
        "改正作业的 nodeSelector 或 nodeAffinity，或给节点打标签：kubectl label node NODE KEY=VALUE（要求：{wanted}）"
    ),
    "label_values": "节点上 {label} 的值有：{values}。",
    "label_absent": "这些节点都没有标签 {label}。",
    "nodes_cordoned": "能放下它的节点都暂停接收新 Pod（cordon）：{nodes}。",
    "uncordon_advice": "如果维护已经结束：kubectl uncordon NODE（{nodes}）",
    "nodes_not_ready": "能放下它的节点都不可用（NotReady）：{nodes}。",
    "node_back_advice": "恢复 {nodes}：机器是否开机、kubelet 是否在运行？systemctl status kubelet",
    "also_tainted": "被污点预留：{nodes}（{count} 个节点）。",
    "also_not_selected": "不符合它的要求：{nodes}（{count} 个节点）。",
    "also_cordoned": "暂停接收新 Pod（cordon）：{nodes}（{count} 个节点）。",
    "also_not_ready": "不可用（NotReady）：{nodes}（{count} 个节点）。",
    "short_of_cpu": "没有节点有足够的空闲 CPU：需要 {needs} 核，最多的 {node} 只有 {free} 核。",
    "short_of_memory": "没有节点有足够的空闲内存：需要 {needs:bytes}，最多的 {node} 只有 {free:bytes}。",
    "short_of_pods": "能放下它的节点的 Pod 数都已到上限（例如 {node}）。",
    "short_of_resource": "没有节点有足够的 {resource}：需要 {needs}，最多的 {node} 只有 {free}。",
    "short_of_advice": "减少 {resource} 的申请，或腾出一些：kubectl describe node {node}（看 Allocated resources）",
    "gpus_wait_for_rest": "那里（{nodes} 个节点）有 {gpus:gpus} 因此闲着。",
    "claim_missing": "它要用的存储卷声明（PVC）{claim} 在 {namespace} 里不存在。",
    "claim_missing_advice": "创建 PVC {claim}，或改正作业里的名字：kubectl get pvc -n {namespace}",
    "claim_unbound": "它要用的存储卷声明（PVC）{claim} 还没有绑定到存储卷。",
    "claim_unbound_advice": (
        "查看原因：kubectl describe pvc {claim} -n {namespace}。常见：存储类不存在，或存储供应程序没有运行。"
    ),
    "volume_elsewhere": "它的存储卷只在别的节点上，而有空位的节点用不了（volume node affinity）。",
    "volume_elsewhere_advice": "在有该存储卷的节点上腾出空位（kubectl describe pv），或改用共享存储（NAS）。",
    "volume_unavailable": "有空位的节点用不了它的存储卷：{message}。",
    "volume_unavailable_advice": "查看 PVC 和存储卷：kubectl describe pvc。调度器的说法：{message}",
    "pending_fresh": "它应该马上就会启动：{node} 有空位。",
    "pending_fresh_advice": "半分钟后再看。如果那时还没有到 {node} 上，这里会说明原因。",
    "no_scheduler": "{node} 有空位，但没有调度器处理过这个 Pod。它指定的调度器是 {scheduler}。",
    "no_scheduler_advice": (
        "{scheduler} 在运行吗？kubectl get pods -A | grep scheduler。如果没有这个调度器，改正作业的 "
        "schedulerName（{node} 可以放下它）。"
    ),
    "pod_affinity": "它要求靠近或远离其他 Pod，有空位的节点都不满足。",
    "host_ports": "它要用节点上的端口，而有空位的节点上该端口都被占用。",
    "topology_spread": "它要求分散在不同节点或区域，有空位的节点都不满足。",
    "scheduler_disagrees": "按计算 {node} 有空位，但调度器拒绝了它，以调度器为准。",
    "scheduler_disagrees_advice": "按调度器的说法处理。完整信息：kubectl describe pod",
    "scheduler_says": "调度器的说法：{message}",
    "overtaken": (
        "后提交的作业先拿到了资源：{user} 的 {pod} 比它晚 {later:duration}提交，已在 {node} 上使用 {gpus:gpus}。"
    ),
    "overtaken_taint": "原因：它容忍 {node} 的污点 {taint}，而本 Pod 不容忍。",
    "overtaken_queue": "原因：它的队列 {queue} 有余量，而本 Pod 的队列 {own} 没有。",
    "overtaken_held": "原因：上面的问题拦住了本 Pod，没有拦住它。",
    "overtaken_priority": "原因：它的优先级更高（{priority}，本 Pod 为 {own}）。",
    "overtaken_smaller": "原因：它只要 {gpus:gpus}，放得下；{needs:gpus} 放不下。",
    "overtaken_unknown": "从 Pod 本身看不出原因：调度器不保证先提交的先运行。",
    "overtaken_others": "另外还有 {count} 个 Pod 也是这样。",
    "wait": "等待。",
    "taint_trouble": "能放下它的节点都出了问题，被 Kubernetes 暂停使用（{taint}）：{nodes}（{count} 个节点）。",
    "short_of_pods_advice": "删除 {node} 上不需要的 Pod，或提高其 kubelet 的 maxPods。",
}
