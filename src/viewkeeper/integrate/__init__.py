"""The integrator: views that join tables of several databases, which go on changing while we ask them.

What an algorithm is told and what it answers are messages; it never waits, and never speaks to anything
itself.
The same machines run in the simulator and over real sources::

    bags, views, routes      what is joined, and in which order
    messages                 Update, Answer, Mark  ─►  Query, ViewChange
    waiting, transactions    what has arrived and is not in the view yet
    naive, sweep, nested_sweep, eca, strobe, c_strobe
                             the algorithms of Agrawal et al., SIGMOD 1997, one file each
    integrator               a machine, and a check that no message was lost, doubled or reordered
    simulate/                sources, channels, faults, and a checker that decides which promise was kept

Begin with :mod:`viewkeeper.integrate.sweep`.
"""
