"""English: the document about an incident."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "incident.state": "State",
    "incident.subject": "Subject",
    "incident.began": "Began",
    "incident.resolved": "Resolved",
    "incident.lasted": "Lasted",
    "incident.owner": "Owner",
    "incident.notified": "Notified",
    "incident.acknowledged": "Acknowledged by",
    "incident.explained-by": "Symptom of",
    "incident.titled": "{title}: {text}",
    "incident.remark": " ({text})",
    "incident.note": (
        "Written by gpuwarden at {at}. It contains what gpuwarden observed, sent and did; changes made with other "
        "tools are not recorded."
    ),
}
