"""``python -m viewkeeper``: the command line."""

from viewkeeper.cli.main import app

app(prog_name="viewkeeper")
