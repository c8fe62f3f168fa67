"""The console in the browser: what a warehouse looks like, live, and with leave what can be done to it.

Pages are made on the server from a :class:`~viewkeeper.survey.Survey`, which reads the ledger alone. They
need no other host, no build step and hardly any script. ``guard`` decides who may see and do what.
"""

from __future__ import annotations

from viewkeeper.web.app import create_app
from viewkeeper.web.feed import Feed

__all__ = ["Feed", "create_app"]
