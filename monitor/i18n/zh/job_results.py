"""Chinese: messages about how jobs ended."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "rule.job-finished": "作业已完成",
    "rule.job-failed": "作业失败",
    "rule.job-stopped": "作业被中止",
    "rule.job-not-started": "作业无法启动",
    "job-finished.done": "作业已正常结束，没有出错。",
    "job-stopped.deleted": "作业还没有结束就被删除了。",
    "job-stopped.unseen": "作业已不存在：在 gpuwarden 看不到它的期间，它结束了或被删除了。",
    "job-result.gpu-hours": "共使用 {hours} GPU 小时。",
    "job-result.gpu-hours-used": "共使用 {hours} GPU 小时，平均利用率 {ratio:percent}。",
    "job-result.pods": "{count} 个 Pod 全部结束。",
    "job-result.pod-of": "共 {count} 个 Pod，最先出问题的是 {node} 上的 {pod}。",
    "job-result.first-of": "共 {count} 个 Pod，{node} 上的 {pod} 最先失败，之后另有 {others} 个失败。",
}
