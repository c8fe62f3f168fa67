"""``viewkeeper run``: keeps the views of a project fresh, each within its target lag or by its schedule.

::

    demands ─► decide (schedule.py: pure) ─► an epoch ─► what came of it: metrics, lineage, alerts, failures
       ▲                                                                              │
       └── when views were last fresh, how long they took (memory.py) ◄───────────────┘
"""
