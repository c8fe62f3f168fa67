"""One file per operator: its delta rule, the formula above the code.

:mod:`.delta` dispatches; the other modules each hold the rule of one operator.
"""
