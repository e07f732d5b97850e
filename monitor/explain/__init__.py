"""Why a pod is pending, failing, idle or stuck: cause, evidence and advice as text keys.

One module per situation; `pod.explain_pod` selects it, and `not_created.explain_name` resolves names of pods and jobs.
"""
