"""Chinese: the page where owners keep what is due for cleanup."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "keep.title": "保留",
    "keep.owner": "所属用户：{name}",
    "keep.due": "如不保留，也没有使用，将在 {moment} 之后清理。",
    "keep.question": "保留 {name}？",
    "keep.nothing": "无需操作",
    "keep.not-due": "{name} 目前不在清理计划中。",
    "keep.kept": "{name} 已保留到 {until}。",
    "keep.kept-because": "{name} 已保留到 {until}：{reason}",
    "keep.answered": "这个链接已经用过，下次通知会带新的链接。",
    "keep.for": "保留时长",
    "keep.reason": "原因（选填）",
    "keep.button": "保留",
    "keep.once": "链接只能使用一次。",
    "keep.sign-in": "登录后可查看详情或立即释放。",
    "keep.invalid": "链接无效",
    "keep.expired": "链接已过期",
    "keep.ask": "请使用最新通知里的链接，或联系管理员。",
}
