"""What the agent does when it is asked to: remove an image, end an orphan process, clean up datasets.

Only imported where actions are enabled. Whoever asks needs the token, once for each action; everything is looked at
again where it is, right before it is touched; and it is written down on the node before it is done, and after.
May import: monitor.facts and, of monitor.agent, collectors, runtimes, datasets and what is below. Knows no HTTP server.
"""
