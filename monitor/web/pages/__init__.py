"""The pages, one file per view; `routes.py` lists them.

Everything on a page that may change is a section. An open page polls its own address with the versions of its
sections, and receives those that have changed.
"""
