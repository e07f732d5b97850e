"""Random faults against the whole product in the real lab, while known incidents start and end.

`python -m tests.chaos --minutes 20 --seed 7` (`make chaos`) writes bench/CHAOS.md and bench/chaos.json. `ledger`
records incidents and notifications and compares them; `scene` is the product and its environment; `troubles` are the
incidents that must be reported, `faults` must not prevent that; `driver` schedules them in an order derived from the
seed.
"""
