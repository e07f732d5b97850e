"""Actions that the agent performs on request: removes images, kills orphaned processes, cleans up datasets.

Imported only where actions are enabled. Each request needs the token and is accepted once; the target is checked again
immediately before it is changed; the journal has a line before and after each action.
"""
