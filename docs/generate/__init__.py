"""Makes the reference pages of docs/ out of the code: settings, rules, metrics, commands. `python -m docs.generate`.

What the code does not say itself, in two languages, is in the tables beside this file (*.tsv). Tests compare the pages
with what is made here, and the tables with the code: nothing may be missing and nothing may be left over.
"""
