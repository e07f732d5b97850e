"""Actions that the agent performs on request: removes images, kills orphaned processes, cleans up datasets.

Imported only where actions are enabled. Each request is signed by the daemon for this node and accepted once; its
target is checked again immediately before it is changed; the journal has a line before and after each action.
"""
