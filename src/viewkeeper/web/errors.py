"""What goes wrong with a console, before it serves and while it does."""

from __future__ import annotations

from viewkeeper.errors import ViewkeeperError


class WebError(ViewkeeperError):
    """The console cannot be served so, or will not do what it is asked."""

    code = "VK-WEB"
