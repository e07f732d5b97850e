"""Chinese: text of the rule about conditions and taints that other tools set on nodes."""

from __future__ import annotations

_CHECK_GPU = (
    "先不让新 Pod 调度过来（kubectl cordon {node}），等作业结束或迁走，再检查：ssh {node} nvidia-smi -q；"
    "dmesg -T | grep -i -e NVRM -e Xid"
)

WORDS: dict[str, str] = {
    "rule.node-condition": "节点被标记为故障",
    "doc.node-condition": (
        "其他工具（node-problem-detector、NVSentinel、云厂商等）通过状况或污点把节点标记为故障。表中没有的状况，"
        "只有名字"
        "能说明哪种状态是故障时才报告（`…Unhealthy`、`…Ready`）。自己的问题已说明同一件事时不再重复报告。"
    ),
    "doc.node-condition.severity": "警告；丢卡、显存、XID、内核和文件系统为严重；维护为提示",
    "doc.node-condition.incident": "节点带有 GpuXidError 状况却仍为 Ready，没有任何告警。",
    "doc.node-condition.limit.ignored": "不报告的状况类型和污点键；可用通配符。",
    "doc.node-condition.limit.conditions": "按 `TYPE=True` 或 `TYPE=False` 给出原因，用于表中没有或不对的状况。",
    "doc.node-condition.limit.taints": "故障节点上还会出现的其他污点的键；可用通配符。",
    "node-condition.gpu-missing": "节点 {node} 丢失了 GPU（来自状况 {condition}）。",
    "node-condition.gpu-memory": "节点 {node} 有 GPU 出现显存错误（来自状况 {condition}）。",
    "node-condition.gpu-error": "节点 {node} 有 GPU 报告错误（XID）（来自状况 {condition}）。",
    "node-condition.gpu-link": "节点 {node} 的 NVLink 或 InfiniBand 异常（来自状况 {condition}）。",
    "node-condition.gpu-driver": "节点 {node} 的 GPU 驱动或 device plugin 出错（来自状况 {condition}）。",
    "node-condition.gpu-throttled": "节点 {node} 有 GPU 降频（来自状况 {condition}）。",
    "node-condition.gpu-unhealthy": "节点 {node} 有 GPU 不健康（来自状况 {condition}）。",
    "node-condition.kernel": "节点 {node} 的内核异常（来自状况 {condition}）。",
    "node-condition.filesystem": "节点 {node} 的磁盘或文件系统损坏或只读（来自状况 {condition}）。",
    "node-condition.runtime": "节点 {node} 的容器运行时卡住或反复重启（来自状况 {condition}）。",
    "node-condition.kubelet": "节点 {node} 的 kubelet 不健康或反复重启（来自状况 {condition}）。",
    "node-condition.network": "节点 {node} 的网络异常（来自状况 {condition}）。",
    "node-condition.processes": "节点 {node} 的进程号或打开文件数不足（来自状况 {condition}）。",
    "node-condition.inodes": "节点 {node} 的 inode 不足（来自状况 {condition}）。",
    "node-condition.clock": "节点 {node} 的时钟没有同步（来自状况 {condition}）。",
    "node-condition.isolated": "其他工具因故障隔离了节点 {node}：污点 {condition}。",
    "node-condition.reported": "其他工具报告节点 {node} 有故障：{condition}。",
    "node-condition.maintenance": "节点 {node} 即将维护、正在检查或即将停机（来自状况 {condition}）。",
    "node-condition.says": "它的说明：{message}",
    "node-condition.taint": "污点：{message}",
    "node-condition.gpu-missing.advice": (
        "在 {node} 上用 nvidia-smi -L 核对 GPU 数量。重启节点；如果 GPU 仍然丢失，请检修硬件。"
    ),
    "node-condition.gpu-memory.advice": (
        "排空节点 {node}，重置 GPU（nvidia-smi -r）或重启，让坏行完成重映射。错误再次出现时更换 GPU。"
    ),
    "node-condition.gpu-error.advice": _CHECK_GPU,
    "node-condition.gpu-link.advice": (
        "在 {node} 上检查链路：nvidia-smi nvlink -s；ibstat；systemctl status nvidia-fabricmanager。"
        "在此期间多卡作业会变慢或卡住。"
    ),
    "node-condition.gpu-driver.advice": (
        "在 {node} 上检查 nvidia-smi 是否有响应，device plugin 的 Pod 是否在运行：kubectl get pod -A -o wide "
        "--field-selector spec.nodeName={node}"
    ),
    "node-condition.gpu-throttled.advice": "检查 {node} 的散热和供电：nvidia-smi -q -d PERFORMANCE,TEMPERATURE",
    "node-condition.gpu-unhealthy.advice": _CHECK_GPU,
    "node-condition.kernel.advice": (
        "查看 {node} 的 dmesg -T。任务卡死的节点需要重启：先 kubectl drain {node} --ignore-daemonsets，再重启。"
    ),
    "node-condition.filesystem.advice": (
        "找出损坏的文件系统：ssh {node} dmesg -T | grep -i -e 'I/O error' -e read-only；然后排空节点，检查或更换磁盘。"
    ),
    "node-condition.runtime.advice": (
        "查看日志：ssh {node} journalctl -u containerd -u docker -n 200；查明原因后再重启它。"
    ),
    "node-condition.kubelet.advice": "查看日志：ssh {node} journalctl -u kubelet -n 200",
    "node-condition.network.advice": (
        "检查那里网络插件的 Pod 和 {node} 的内核日志：kubectl get pod -n kube-system -o wide --field-selector "
        "spec.nodeName={node}"
    ),
    "node-condition.processes.advice": (
        "找出进程或打开文件最多的程序：ssh {node} ps -eo user,nlwp,cmd --sort=-nlwp | head；并设置上限（kubelet 的 "
        "podPidsLimit）。"
    ),
    "node-condition.inodes.advice": "找出文件最多的目录：ssh {node} df -i；du --inodes -x / | sort -n | tail",
    "node-condition.clock.advice": "检查时间同步：ssh {node} timedatectl；chronyc tracking",
    "node-condition.isolated.advice": (
        "查明该工具发现了什么（kubectl describe node {node}）并修复，之后它会移除污点。不要去容忍这个污点。"
    ),
    "node-condition.reported.advice": (
        "查看是谁设置的、为什么：kubectl describe node {node}。如果无害，把它加入 daemon.rules.node_condition.ignored。"
    ),
    "node-condition.maintenance.advice": "让 {node} 上的作业及时结束或迁走：kubectl drain {node} --ignore-daemonsets",
}
