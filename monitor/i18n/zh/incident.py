"""Chinese: the document about an incident."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "incident.state": "状态",
    "incident.subject": "对象",
    "incident.began": "开始时间",
    "incident.resolved": "恢复时间",
    "incident.lasted": "持续时间",
    "incident.owner": "所属用户",
    "incident.notified": "已通知",
    "incident.acknowledged": "认领人",
    "incident.explained-by": "起因",
    "incident.titled": "{title}：{text}",
    "incident.remark": "（{text}）",
    "incident.note": (
        "由 gpuwarden 生成于 {at}。内容包括 gpuwarden 观察到的情况、发出的通知和执行的操作，不含用其他工具做的变更。"
    ),
}
