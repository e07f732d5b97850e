"""Chinese: what a cleanup would do and why, what it leaves alone, and why there is no plan."""

from __future__ import annotations

_WHY: dict[str, str] = {
    "cleanup.why.build-cache": "构建缓存共 {bytes:bytes}，清理其中 {seconds:duration}内没有用过的部分。",
    "cleanup.why.dangling": "没有标签，已 {seconds:duration}未使用（{bytes:bytes}）。",
    "cleanup.why.unused": "上次使用是 {seconds:duration}前（{bytes:bytes}）。",
    "cleanup.why.never-used": "在此节点上已 {seconds:duration}，从未使用（{bytes:bytes}）。",
    "cleanup.why.dataset-unused": (
        "上次使用是 {seconds:duration}前；{files} 个文件，共 {bytes:bytes}；所有者：{owner}。"
    ),
    "cleanup.why.dataset-over-quota": (
        "{owner} 的配额是 {quota:bytes}，已超出 {excess:bytes}；此项上次使用是 {seconds:duration}前："
        "{files} 个文件，共 {bytes:bytes}。"
    ),
    "cleanup.why.purge": "在回收站中已超过 {seconds:duration}：{count} 项，共 {bytes:bytes}。彻底删除后无法恢复。",
    "cleanup.why.pod-finished": "已在 {seconds:duration}前结束（{phase}）。",
    "cleanup.why.pod-stuck": "{seconds:duration}前就该结束；{node} 的 agent 已确认那里没有它的任何进程。",
    "cleanup.why.pod-confirmed": "{seconds:duration}前就该结束；管理员已确认 {node} 上没有它的任何进程。",
    "cleanup.why.gpu-zombie": "它的 Pod 已经结束，但仍占用 {node} 的 GPU {gpu}，已 {seconds:duration}。",
    "cleanup.why.gpu-idle": "占用 {node} 的 GPU {gpu}，所有 GPU 都已空闲 {seconds:duration}。",
    "cleanup.why.gpu-orphan": (
        "进程 {pid}（{process}）不属于任何 Pod，已占用 {node} 的 GPU {gpu} 达 {seconds:duration}。"
    ),
}

_KEPT: dict[str, str] = {
    "cleanup.kept.kept": "用户要求保留。",
    "cleanup.kept.pinned": "已设为保留。",
    "cleanup.kept.owner-kept": "策略规定不动该所有者的数据。",
    "cleanup.kept.in-use": "正在使用。",
    "cleanup.kept.needed": "有 Pod 或作业模板需要它。",
    "cleanup.kept.local-only": "已知的镜像仓库里都没有它，删除后可能无法再拉取。",
    "cleanup.kept.too-young": "时间还不够久。",
    "cleanup.kept.unknown": "信息不全，不动它。",
    "cleanup.kept.refused-lately": "不久前节点拒绝了对它的操作。",
    "cleanup.kept.exempt": "策略已豁免，或属于系统。",
    "cleanup.kept.newest": "是该作业最近的几个之一。",
    "cleanup.kept.job-active": "所属作业还没有结束。",
    "cleanup.kept.finalizer": "有 finalizer 没有移除，需要设置它的组件自己移除；绝不强制删除。",
    "cleanup.kept.process-left": "节点上还有它的容器或进程。",
    "cleanup.kept.agent-silent": "节点的 agent 没有响应，无法确认它已经结束。",
    "cleanup.kept.busy": "它的其他 GPU 正在工作。",
    "cleanup.kept.job-busy": "同一作业的其他 Pod 正在工作或尚未启动。",
    "cleanup.kept.inference": "它是推理服务，可以等待请求。",
    "cleanup.kept.draws-power": "从功率看，该 GPU 在工作。",
    "cleanup.kept.terminating": "已经在结束过程中。",
    "cleanup.kept.container-left": "它在一个运行中的容器里，请先停掉该容器。",
    "cleanup.kept.platform": "属于平台自身的进程。",
}

_REFUSED: dict[str, str] = {
    "cleanup.refused.needs-unknown": "没有计划：无法从集群读取 {kinds}，不知道哪些仍然需要。",
    "cleanup.refused.stale": (
        "没有计划：{node} 的 agent 提供的信息相差 {seconds:duration}，可能是 agent 没有响应，也可能是节点时钟不准。"
    ),
    "cleanup.refused.images-unknown": "没有计划：现在读不到 {node} 的镜像或容器。",
    "cleanup.refused.disk-unknown": "没有计划：现在读不到 {node} 上磁盘的用量。",
    "cleanup.refused.other-root": "没有计划：{node} 上扫描的是 {other}，而要求的是 {root}。",
    "cleanup.refused.scan-old": "没有计划：{node} 上 {root} 的扫描结果相差 {seconds:duration}，已过期。",
    "cleanup.refused.read-only": "没有计划：{node} 上的 {root} 是只读的。",
    "cleanup.refused.no-atime": (
        "没有计划：{node} 上的 {root} 不记录文件的读取时间（noatime）。请改用 relatime 挂载，"
        "或设置 without_atime: true，只按修改时间判断。"
    ),
    "cleanup.refused.atime-unknown": (
        "没有计划：{node} 上的 {root} 是否记录读取时间由存储服务器决定。只有在“只读不改的数据也可以清理”时，"
        "才设置 without_atime: true。"
    ),
    "cleanup.refused.nodes-unseen": "没有计划：{nodes} 也挂载了 {root}，但无法得知那里谁打开了文件。",
    "cleanup.refused.kubernetes-unseen": "没有计划：现在无法向 Kubernetes 查询 Pod。",
    "cleanup.refused.view-old": "没有计划：集群视图是 {seconds:duration}前的。",
}

_FRAME: dict[str, str] = {
    "cleanup.kubelet-first": (
        "策略在磁盘用到 {high:percent} 时才动作，而 kubelet 在 {kubelet:percent} 时就会自己删除镜像。"
        "请把 high 设得更低。"
    ),
    "cleanup.capped.items": "还有更多可清理：计划已达到条目数上限。",
    "cleanup.capped.bytes": "还有更多可清理：因字节数上限，部分没有列入。",
    "cleanup.risk.low": "可重新获取",
    "cleanup.risk.medium": "一段时间内可恢复",
    "cleanup.risk.high": "无法撤销",
}

WORDS: dict[str, str] = _WHY | _KEPT | _REFUSED | _FRAME
