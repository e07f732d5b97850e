"""Chinese: the dashboard of GPUs and jobs."""
# ruff: noqa: RUF001

from __future__ import annotations

DASHBOARD = ("gpuwarden / GPU 与任务", "上方所选节点、卡、用户、队列和命名空间的卡、任务、用户与容器。")
ROWS = {
    "gpus.now": "当前",
    "gpus.gpus": "GPU 卡",
    "gpus.faults": "故障",
    "gpus.processes": "卡上的进程",
    "gpus.jobs": "任务",
    "gpus.users": "用户",
    "gpus.containers": "容器",
}
PANELS = {
    "gpus.count": ("卡数", "符合上方选择的卡。"),
    "gpus.utilization": ("平均利用率", "连续几小时低于 20% 时，请了解任务是否在等数据，或者不需要这么多卡。"),
    "gpus.idle": ("占而不用", "Pod 还在，但已经一段时间没有使用。请用户停止它。"),
    "gpus.zombie": ("僵尸、卡死、虚占", "被已经结束或无法结束的东西占着。见下方卡住的进程；卡死的可能需要重启节点。"),
    "gpus.orphan": (
        "集群外进程、显存残留",
        "被不属于任何 Pod 的进程使用，或显存被占却没有进程。没人认识的，请按入侵处理。",
    ),
    "gpus.faulty": ("故障", "掉卡或报错。先停止调度、保存任务，再重置或更换。"),
    "gpus.power": ("总功耗", "所选卡的总功耗。"),
    "gpus.waiting": ("排队需要的 GPU", "所选用户、队列和命名空间中未调度的 Pod 申请的卡数。"),
    "gpus.gpu-table": ("逐卡明细", "每张卡的状态、开始时间和占用者。"),
    "gpus.timeline": ("状态变化", "卡从何时开始空置、被遗留或故障。最多 100 张，情况差的优先；选择一个节点可以看全。"),
    "gpus.heat-map": (
        "利用率热力图",
        "每张卡一行，颜色越蓝越忙；利用率最低的 100 张。长期浅色的卡空闲或被浪费。",
    ),
    "gpus.utilization-line": (
        "利用率",
        "所选范围内最低的 60 张。显存被占而利用率一直为 0：任务卡死或在等数据。锯齿状：数据加载太慢。",
    ),
    "gpus.memory-line": ("显存占用", "最高的 60 张。接近 100% 时，批次再大一点就会因显存不足而失败。"),
    "gpus.power-line": ("功耗", "最高的 60 张。利用率 100% 但只是空转时，功耗看得出来。"),
    "gpus.temperature-line": ("温度", "最高的 60 张。约 83 °C 以上会降频：请检查风扇、风道和进风温度。"),
    "gpus.clock-line": ("SM 频率", "最低的 60 张。有负载时频率下降，原因见旁边的图。"),
    "gpus.throttled": ("降频原因", "过热和供电限制（power brake）是故障；有负载时达到功耗上限是正常的。"),
    "gpus.xids": (
        "XID",
        (
            "agent 启动以来驱动报告的错误码。48、95、109、119 等：排空节点并重置该卡；79：重启节点。"
            "13、31 多半是程序自身的错误，43、63 无需处理。"
        ),
    ),
    "gpus.xids-line": ("新出现 XID 的卡", "最近 5 分钟内报告过错误码的卡数。"),
    "gpus.kernel": ("内核日志", "agent 启动以来内核日志中的错误类别。处理方法见告警 kernel-fault。"),
    "gpus.kernel-skipped": ("跳过的内核日志行", "出现过快而未分析的行。内核日志被刷屏：在节点上用 dmesg -T 查看。"),
    "gpus.ecc": ("ECC 错误", "有一个未纠正的错误就应停用该卡；已纠正的错误不断增加是前兆。"),
    "gpus.repairs": ("待处理的修复", "待重置的，请尽快安排重置。行重映射失败的卡需要更换。"),
    "gpus.recovery": ("驱动要求的处理", "排空节点后按要求处理。空表示没有要求。"),
    "gpus.links": ("每秒链路错误", "PCIe 重传或 NVLink 错误持续不断：重新插卡，检查转接卡、线缆或桥接器。"),
    "gpus.processes": ("进程", "谁占着显存。没有 Pod 的一行不是通过 Kubernetes 启动的。"),
    "gpus.stuck": ("卡住的进程", "处于 D 或 Z 状态，或已消失却还占着卡。D 状态常因 NAS 失联：见“存储与清理”的挂载。"),
    "gpus.explained": ("异常的 Pod 及原因", "用 `gpuwarden why POD` 查看数据和处理办法。"),
    "gpus.causes": ("原因", "挡住 Pod 最多的原因。不受上方选择影响。"),
    "gpus.requested": ("各阶段申请的 GPU", "有空闲卡而 Pending 不下降时，请看上方的原因。"),
    "gpus.statuses": ("异常的 Pod 数", "按所处状态。不受上方选择影响。"),
    "gpus.users": ("各用户用量", "卡多而利用率低的用户，请优先沟通。"),
    "gpus.user-gpus": ("各用户占用的 GPU", "每个用户的 Pod 占用的卡数，最多的 30 个。"),
    "gpus.user-utilization": ("各用户利用率", "每个用户的卡的平均利用率，最低的 30 个。"),
    "gpus.container-cpu": ("CPU 使用", "最高的 20 个。数据加载用满 CPU 限额时，GPU 就会空等。"),
    "gpus.container-throttled": ("受 CPU 限额压制", "每秒内线程不允许运行的秒数。请提高限额，或减少 worker。"),
    "gpus.container-memory": ("内存使用", "最高的 20 个，不含可释放的缓存。"),
    "gpus.container-memory-share": ("内存占限额的比例", "到 100% 时容器会被内核终止。请及时提高限额。"),
    "gpus.container-shm": ("共享内存使用", "即 /dev/shm，多 worker 的数据加载需要它。没有 Pod 的一行是节点自身的。"),
    "gpus.container-shm-share": (
        "共享内存占比",
        "写满后任务会因 bus error 失败。请在 /dev/shm 挂载 medium 为 Memory 的 emptyDir。",
    ),
}
