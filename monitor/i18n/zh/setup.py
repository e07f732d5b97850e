"""Chinese: the summary of a configuration, and the questions of `gpuwarden init`."""

from __future__ import annotations

_SUMMARY = {
    "zone": "时区：{zone}，当地时间 {now}。",
    "agent": (
        "Agent：节点 {node}，监听 {listen}，有令牌；启用 {running}/{collectors} 个采集器，"
        "挂载点 {mounts} 个，镜像仓库 {registries} 个。"
    ),
    "agent-without-token": (
        "Agent：节点 {node}，监听 {listen}，无令牌；启用 {running}/{collectors} 个采集器，"
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

WORDS: dict[str, str] = {f"config.{key}": text for key, text in _SUMMARY.items()}
