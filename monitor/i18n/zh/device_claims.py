"""Chinese: claims for devices (Dynamic Resource Allocation) that keep a pod from a node or from starting."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "dra_not_created": "它的资源声明 {claim} 还没有从模板 {template} 创建出来。",
    "dra_not_created_advice": (
        "资源声明由 Kubernetes 创建：查看 Pod 的事件（kubectl describe pod {pod} -n {namespace}）和 "
        "kube-controller-manager 的日志。"
    ),
    "dra_template_missing": "{namespace} 中没有资源声明模板 {template}。",
    "dra_template_missing_advice": "创建它，或在 Pod 里改正名称：kubectl get resourceclaimtemplates -n {namespace}",
    "dra_controller_says": "资源声明控制器报告：{message}",
    "dra_claim_missing": "{namespace} 中没有资源声明 {claim}。",
    "dra_claim_missing_advice": "创建它，或在 Pod 里改正名称：kubectl get resourceclaims -n {namespace}",
    "dra_claim_leaving": "资源声明 {claim} 正在删除。",
    "dra_claim_leaving_advice": (
        "等最后一个使用者结束后重新创建：kubectl get resourceclaim {claim} -n {namespace} -o yaml"
    ),
    "dra_claim_full": "资源声明 {claim} 已为另外 {count} 个 Pod 保留，这是 Kubernetes 允许的上限。",
    "dra_claim_full_advice": "等其中一个结束，或另建一个声明：{pods}",
    "dra_claim_elsewhere": "资源声明 {claim} 正由 {node} 上的 {pods} 使用，它只能在那里运行，但 {node} 无法容纳它。",
    "dra_claim_bound": "它的资源声明 {claim} 的设备在 {node} 上，但 {node} 无法容纳它。",
    "dra_claim_elsewhere_advice": (
        "在 {node} 上腾出资源或解除封锁（kubectl describe node {node}），或给这个 Pod 单独的声明。"
    ),
    "dra_class_missing": "它的资源声明 {claim} 所要的 DeviceClass {device_class} 不存在。",
    "dra_class_missing_advice": "安装 DRA 驱动或改正名称：kubectl get deviceclasses",
    "dra_no_devices": "没有节点提供 {device_class} 类的设备：驱动 {driver} 没有发布任何设备。",
    "dra_no_devices_advice": (
        "查看各节点上驱动的 Pod 及其日志：kubectl get pods -A -o wide | grep -i dra；kubectl get resourceslices"
    ),
    "dra_too_many": "它的资源声明 {claim} 要 {count} 个 {device_class} 类的设备，而单个节点最多只有 {largest} 个。",
    "dra_too_many_advice": "每个 Pod 最多申请 {largest} 个，把工作分到多个 Pod。",
    "dra_all_taken": (
        "它的资源声明 {claim} 要在同一节点上占 {count} 个 {device_class} 类的设备（共 {total} 个），"
        "但空闲的不够（整个集群空闲 {free} 个）。"
    ),
    "dra_all_taken_advice": "等待，或请占用者释放设备：kubectl get resourceclaims -A",
    "dra_holders": "设备的占用者：{holders}。",
    "dra_selector": (
        "{device_class} 类的设备有空闲（{total} 个中的 {free} 个），但没有节点上的设备满足它的资源声明 {claim} "
        "的选择条件：{selectors}"
    ),
    "dra_selector_advice": "对照设备的属性（kubectl get resourceslices -o yaml）检查选择条件，并放宽它们。",
    "start_dra_unregistered": "DRA 驱动 {driver} 没有在 {node} 的 kubelet 注册。",
    "start_dra_unregistered_advice": (
        "在 {node} 上启动驱动：kubectl get pods -A -o wide | grep -i dra；它的日志会说明为什么没有运行。"
    ),
    "start_dra_claim": "{node} 上的 DRA 驱动 {driver} 无法准备资源声明 {claim} 占用的 {devices}：Pod 无法启动。",
    "start_dra_claim_advice": (
        "查看 {node} 上驱动的日志（kubectl get pods -A -o wide | grep -i dra）和该设备；"
        "kubectl get resourceclaim {claim} -n {namespace} -o yaml"
    ),
}
