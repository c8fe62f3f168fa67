"""The reference pages of the documentation, made from the code: ``python -m viewkeeper.reference docs``.

Commands from the command line's own declarations, settings from their models, names from their docstrings,
error codes from a table that a test compares with the code. So none of them can go stale.
"""
