"""Chinese: the summary of a configuration, and the questions of `gpuwarden init`."""

from __future__ import annotations

_SUMMARY = {
    "zone": "时区：{zone}，当地时间 {now}。",
    "agent": (
        "agent：节点 {node}，监听 {listen}，有令牌；启用 {running}/{collectors} 个采集器，"
        "挂载点 {mounts} 个，镜像仓库 {registries} 个。"
    ),
    "agent-without-token": (
        "agent：节点 {node}，监听 {listen}，无令牌；启用 {running}/{collectors} 个采集器，"
        "挂载点 {mounts} 个，镜像仓库 {registries} 个。"
    ),
    "page": "网页：监听 {listen}；日志级别 {level}。",
    "receivers": "告警：发送到 {names}。",
    "no-receivers": "告警：没有配置接收者，不会发送。",
    "cleanup": "清理：{policy}（{kind}，{mode}），下次执行 {next}。",
    "cleanup-high": "清理：{policy}（{kind}，{mode}），磁盘使用率超过 {high:percent} 时执行。",
    "cleanup-both": "清理：{policy}（{kind}，{mode}），下次执行 {next}；磁盘使用率超过 {high:percent} 时也会执行。",
    "no-cleanup": "清理：没有配置策略。",
    "report": "报告：发送到 {names}，下次发送 {next}。",
    "report-to-no-receiver": "报告：没有配置接收者，不会发送。",
    "no-report": "报告：没有配置定时发送。",
    "digest": "告警汇总：下次发送 {next}。",
    "maintenance": "维护窗口：下次从 {next} 开始，持续 {length:duration}。",
}

_CONNECT = {
    "title": "尚未连接集群或 GPU，可以连接：",
    "cluster": "Kubernetes 集群：把 kubeconfig 放到 ~/.kube/config，或运行 gpuwarden init。未找到的原因：{why}",
    "gpu": "本机的 GPU：安装 NVIDIA 驱动，nvidia-smi 应能列出 GPU。",
    "agents": "其他机器：在那里运行 gpuwarden agent，并在 daemon.agents.static 中列出地址。",
    "demo": "没有集群也想看全部功能：gpuwarden demo。",
}

_INIT = {
    "question.language": "问答和消息使用的语言（en、zh）",
    "question.timezone": "计划和消息使用的时区",
    "question.receiver": "群机器人的 Webhook 地址：企业微信、钉钉、飞书或其他 Webhook（{none} 表示不发消息）",
    "question.secret": "机器人的加签密钥（{none} 表示没有加签）",
    "question.kubernetes": "Kubernetes 集群：{auto}（启动时自动查找）、kubeconfig 文件路径，或 {none}",
    "question.dataset-roots": "需要清理的数据集目录，用逗号分隔（{none} 表示不清理数据集）",
    "question.node": "能访问这些目录的节点（运行 agent）",
    "question.cleanup": "每天 03:00 执行清理演练？只报告可以清理的内容，不会删除（yes 或 no）",
    "question.report-day": "每周发送报告的日期：mon 到 sun，09:00 发送（{none} 表示不发送）",
    "question.sample": "现在发送一条样例消息？（yes 或 no）",
    "invalid.language": "请输入 en 或 zh。",
    "invalid.timezone": "{given} 不是时区名称；请输入 Asia/Shanghai、Europe/Berlin 或 UTC 这样的名称。",
    "invalid.receiver": (
        "这不是 Webhook 地址。请从机器人页面完整复制：以 https:// 开头，企业微信机器人的地址以 ?key= 加密钥结尾。"
    ),
    "invalid.root": (
        "{given} 不能作为数据集目录；请输入 /mnt/share/datasets 这样的绝对路径，不能是系统目录或 /home 这样的上层目录。"
    ),
    "invalid.roots": "目录太多；最多输入 {most} 个，或改为它们的上级目录。",
    "invalid.node": "请输入一个节点名，不含空格。",
    "invalid.yes": "请输入 yes 或 no（是或否）。",
    "invalid.day": "请输入 mon、tue、wed、thu、fri、sat 或 sun（也可以写周一到周日）。",
    "invalid.kubernetes": "无法使用这个 kubeconfig：{reason}",
    "exists": "{path} 已存在，未改动；请用 --config 另选文件，或用 --force 覆盖。",
    "cannot-write": "无法写入 {path}：{reason}。请用 --config 另选文件，或使用 sudo。",
    "no-terminal": "标准输入不是终端，请用选项提供答案。缺少：{options}。",
    "aborted": "已停止，没有写入任何文件。",
    "enter": "直接按回车接受方括号中的答案。",
    "written": "已写入：{path}",
    "accepted": "{receiver} 已接收样例消息，请在群里查看。",
    "rejected": (
        "{receiver} 没有接收样例消息：{answer}。请在 {path} 中更正地址，然后运行：gpuwarden alerts test --config {path}"
    ),
    "start": "启动：gpuwarden up --config {path}",
    "file.head": "gpuwarden 的配置，由 gpuwarden init 生成。 | 修改后请检查：gpuwarden check-config {path}",
    "file.timezone": "计划、消息、网页和命令输出使用的时区。",
    "file.kubernetes": "要监控的集群：auto 表示自动查找 kubeconfig 或 Pod 的服务账号。",
    "file.language": "消息的语言：en 或 zh。",
    "file.receivers": "告警发送到哪里。地址中含有密钥，请勿公开此文件。 | 测试：gpuwarden alerts test",
    "file.no-receiver": '告警发送到哪里，例如 ["https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY"]。',
    "file.report": "每周报告 GPU 小时的使用和浪费情况：分、时、日、月、星期。",
    "file.cleanup": (
        "每天 03:00 执行清理。这些策略只报告可以清理的内容；立即查看：gpuwarden cleanup plan"
        " | 确认计划无误后，在策略中加上 mode: enforce；其他前提见 docs/zh/cleanup.md。"
    ),
    "file.allow": "只清理这些目录下的数据集。",
    "file.keys": (
        "扫描数据集需要密钥：先运行一次 gpuwarden keys --directory {directory}， | 再去掉下一行和文件末尾各行开头的 #。"
    ),
    "file.pods": "结束超过七天的 Pod，以及删除时卡住的 Pod。",
    "file.images": "没有容器或模板使用的镜像。",
    "file.datasets": "60 天内没有读写的数据集。",
    "file.agents": "数据集所在节点的 agent：",
}

WORDS: dict[str, str] = {
    **{f"config.{key}": text for key, text in _SUMMARY.items()},
    **{f"connect.{key}": text for key, text in _CONNECT.items()},
    **{f"init.{key}": text for key, text in _INIT.items()},
}
