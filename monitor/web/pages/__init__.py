"""The pages, one file a view. They show what others know and decide nothing; `all.py` lists them.

Everything on a page that may change is a section. A page in a browser asks for itself again every so often and says
which sections it has; it gets those that have changed, and nothing at all if none has.
"""
