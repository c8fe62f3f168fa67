"""Plan: from definitions, versions and statistics to a tuple of frozen steps. Pure: no I/O, no session.

``layout`` says how a view is stored, ``steps`` what can be done, ``choice`` whether to recompute, ``leaves``
what stands for a table in each state, and ``planner`` puts an epoch together.
"""
