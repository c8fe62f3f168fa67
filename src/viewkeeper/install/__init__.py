"""Install: a view's change applied to its storage. One file per way of doing it.

Each gives the statements for what was counted; they run in a session whose writes go to the epoch's branch.
Aliases begin with ``_vk_``: Spark takes ``t._row_id`` for a field of the user's column ``t``,
where there is one.
"""
