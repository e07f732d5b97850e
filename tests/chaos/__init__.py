"""Random faults against the whole product in the real lab, while troubles come and go of which all is known.

    python -m tests.chaos --minutes 20 --seed 7     `make chaos`; writes bench/CHAOS.md and bench/chaos.json

`ledger` holds what was so and what was told, and judges; `scene` is the product and what it looks at; `troubles` are
what has to be told, `faults` what must not keep it from that; `driver` deals them out in an order the seed decides.
"""
