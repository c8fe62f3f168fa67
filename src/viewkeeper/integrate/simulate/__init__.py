"""The simulator: sources that change while they are asked, channels that take their time, and a checker.

A run depends on nothing but its world and its seed. ``worlds`` make up what happens, ``sources`` and
``channels`` let it happen, ``simulation`` runs it, and ``checker`` decides from the history alone what the
view has promised and kept.
"""
