"""The command ``viewkeeper``. This file declares the commands; ``commands.py`` carries them out.

Exit code 0 means that all is well, 1 that it is not, 2 that the command line was wrong, 130 that it was
interrupted. Imports inside the commands are on purpose: the SQL parser and the database take half a second
to load, which `--help` need not wait for.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from viewkeeper import __version__
from viewkeeper.cli import completing
from viewkeeper.cli.help import help_text
from viewkeeper.cli.output import Output
from viewkeeper.errors import ViewkeeperError, words_of

INTERRUPTED = 130


class _Group(TyperGroup):
    """Turns errors into a message and an exit code, in one place for all commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(self, ctx.command_path) + "\n")

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ViewkeeperError as error:
            _report(ctx, error)
        except KeyboardInterrupt:
            typer.echo("Interrupted; nothing more was published.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # whoever read us has seen enough; typer ends the program without a word
        except Exception as error:
            if isinstance(error, (typer.Exit, typer.Abort, typer.BadParameter)) or hasattr(error, "show"):
                raise  # the parser's own, which it reports itself
            said = words_of(error).strip().splitlines()
            message = f"{type(error).__name__}: {said[0] if said else 'no message'}"
            hint = "This should not happen. `viewkeeper --debug …` shows where it did."
            _report(ctx, ViewkeeperError(message, hint=hint))
        raise typer.Exit(1)


def _report(ctx: Any, error: ViewkeeperError) -> None:
    if ctx.params.get("debug"):
        traceback.print_exc()
    Output(json=bool(ctx.meta.get("json"))).error(error)


app = typer.Typer(
    cls=_Group,
    help="SQL materialized views on Apache Spark that keep themselves fresh.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(value: bool | None) -> None:  # noqa: FBT001  (typer calls it so)
    if value:
        typer.echo(f"viewkeeper {__version__}")
        raise typer.Exit


def _note_json(ctx: typer.Context, value: bool) -> bool:  # noqa: FBT001  (typer calls it so)
    ctx.meta["json"] = value  # for errors, which are reported far from here
    return value


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", callback=_note_json)]
ProjectFolder = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="The project folder.", show_default="the one you are in"),
]
Views = Annotated[
    list[str] | None,
    typer.Argument(help="Views.", show_default="all of them", autocompletion=completing.views),
]
View = Annotated[str, typer.Argument(help="A view.", autocompletion=completing.views)]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="auto, incremental, 'incremental strict' or full.",
        show_default="the view's, else the project's",
    ),
]


@app.callback()
def _root(
    *,
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    pass


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    name: Annotated[str | None, typer.Option(help="The project's name.", show_default="the folder's")] = None,
    *,
    json: Json = False,
) -> None:
    """Make a small project to start from."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.init(Output(json=json), folder, name))


@app.command(short_help="Show what a refresh would do, and touch nothing.")
def plan(
    views: Views = None,
    policy: PolicyName = None,
    project: ProjectFolder = None,
    *,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="From what the ledger holds: the sources as last seen. No Spark."),
    ] = False,
    json: Json = False,
) -> None:
    """Show what a refresh would do, and touch nothing."""
    if stored:
        if policy:
            raise typer.BadParameter("--stored shows what awaits the views, and takes no --policy")
        from viewkeeper.cli import reading

        raise typer.Exit(reading.plan(Output(json=json), project, views or []))
    from viewkeeper.cli import commands

    raise typer.Exit(commands.plan(Output(json=json), project, views or [], policy))


@app.command(short_help="Bring the views up to date, all in one step.")
def refresh(
    views: Views = None,
    policy: PolicyName = None,
    project: ProjectFolder = None,
    *,
    full: Annotated[bool, typer.Option("--full", help="Recompute; short for --policy full.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Drop views that left the project.")] = False,
    propagated: Annotated[
        bool, typer.Option("--propagated", help="Install exactly what `propagate` kept.")
    ] = False,
    json: Json = False,
) -> None:
    """Apply new and changed definitions, and bring the views up to date in one step."""
    if propagated:
        if views or policy or full or prune:
            raise typer.BadParameter("--propagated installs what was kept, and takes no other choice")
        from viewkeeper.cli import commands

        raise typer.Exit(commands.install_propagated(Output(json=json), project))
    if full and policy not in (None, "full"):
        raise typer.BadParameter("--full and --policy contradict each other")
    from viewkeeper.cli import commands

    policy = "full" if full else policy
    raise typer.Exit(commands.refresh(Output(json=json), project, views or [], policy, prune=prune))


@app.command(short_help="Compute the deltas now, for `refresh --propagated`.")
def propagate(
    views: Views = None, policy: PolicyName = None, project: ProjectFolder = None, *, json: Json = False
) -> None:
    """Compute the deltas of the views now, and keep them for `refresh --propagated`."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.propagate(Output(json=json), project, views or [], policy))


@app.command(short_help="Show how a view is kept: strategy, reason, steps, SQL.")
def explain(
    view: Annotated[
        str | None,
        typer.Argument(help="A view.", show_default=False, autocompletion=completing.views),
    ] = None,
    project: ProjectFolder = None,
    *,
    lattice: Annotated[
        bool, typer.Option("--lattice", help="Which view's changes can be made from which.")
    ] = False,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="As in the last epoch that changed it, from the ledger. No Spark."),
    ] = False,
    json: Json = False,
) -> None:
    """Show how a view is kept: the strategy, the reason and the SQL; or how all of them hang together."""
    if view is None and not lattice:
        raise typer.BadParameter("name a view, or ask for --lattice")
    if view is None or lattice:
        from viewkeeper.cli import reading

        raise typer.Exit(reading.lattice(Output(json=json), project))
    if stored:
        from viewkeeper.cli import reading

        raise typer.Exit(reading.explain(Output(json=json), project, view))
    from viewkeeper.cli import commands

    raise typer.Exit(commands.explain(Output(json=json), project, view))


lattice_app = typer.Typer(
    help="The lattice of the views: which one's changes can be made from which.",
    short_help="Show which view's changes can be made from which.",
)
app.add_typer(lattice_app, name="lattice")


@lattice_app.command("show")
def lattice_show(project: ProjectFolder = None, *, json: Json = False) -> None:
    """Draw the lattice. Needs no Spark."""
    from viewkeeper.cli import reading

    raise typer.Exit(reading.lattice(Output(json=json), project))


@lattice_app.command("extend")
def lattice_extend(
    project: ProjectFolder = None,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Change the project's files.")] = False,
    json: Json = False,
) -> None:
    """Propose columns that let more views be derived from each other; with --apply add them."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.extend_lattice(Output(json=json), project, apply=apply))


sources_app = typer.Typer(
    help="The declared sources: files and databases that the views read.",
    short_help="Show, check or install what the views read from.",
)
app.add_typer(sources_app, name="sources")


@sources_app.callback(invoke_without_command=True)
def sources(ctx: typer.Context, project: ProjectFolder = None, *, json: Json = False) -> None:
    """List the declared sources, with what was seen of them last. Needs no Spark."""
    if ctx.invoked_subcommand is None:
        from viewkeeper.cli import reading

        raise typer.Exit(reading.sources(Output(json=json), project))
    if project is not None or json:
        raise typer.BadParameter(f"write --project and --json behind {ctx.invoked_subcommand}")


@sources_app.command("check")
def sources_check(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Sources; none: all of them.", autocompletion=completing.sources),
    ] = None,
    project: ProjectFolder = None,
    *,
    json: Json = False,
) -> None:
    """Test each source, and say what is missing and how to mend it."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.check_sources(Output(json=json), project, names or []))


@sources_app.command("install")
def sources_install(
    name: Annotated[str, typer.Argument(help="A source of the project that captures by triggers.")],
    project: ProjectFolder = None,
    *,
    run: Annotated[
        bool, typer.Option("--run", help="Run it as the source's user, who must own all.")
    ] = False,
    json: Json = False,
) -> None:
    """Print, or run, the SQL that the owner of the tables needs for capture 'trigger'."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.install_source(Output(json=json), project, name, run=run))


sweep_app = typer.Typer(
    help="Views over several databases: how they are kept right while those change.",
    short_help="Simulate how views over several databases are kept.",
)
app.add_typer(sweep_app, name="sweep")


@sweep_app.command("trace")
def sweep_trace(
    algorithm: Annotated[
        str, typer.Option(help="sweep, nested-sweep, eca, strobe, c-strobe or naive.")
    ] = "sweep",
    seed: Annotated[
        int | None, typer.Option(help="Of a random run.", show_default="the paper's example")
    ] = None,
    sources: Annotated[int, typer.Option(min=1, max=8, help="Sources of a random run.")] = 3,
    updates: Annotated[int, typer.Option(min=1, max=20, help="Updates of a random run.")] = 5,
    *,
    json: Json = False,
) -> None:
    """Show a simulated run, message by message, and which consistency it kept. Needs no Spark."""
    from viewkeeper.cli import sweep

    raise typer.Exit(sweep.trace(Output(json=json), algorithm, seed, sources, updates))


@app.command()
def status(
    seconds: Annotated[
        float | None, typer.Argument(min=0.2, help="With --watch: how often.", show_default="2")
    ] = None,
    project: ProjectFolder = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Go on showing it, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Show how fresh the views are. Needs no Spark."""
    if watch:
        if json:
            raise typer.BadParameter("--watch is for people; without it, --json is one document")
        from viewkeeper.cli.watching import watch as go_on

        raise typer.Exit(go_on(Output(), project, seconds or 2.0))
    if seconds is not None:
        raise typer.BadParameter("how often is a matter of --watch")
    from viewkeeper.cli import reading

    raise typer.Exit(reading.status(Output(json=json), project))


@app.command(short_help="Keep the views fresh: the service.")
def run(
    ctx: typer.Context,
    project: ProjectFolder = None,
    listen: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of console, probes and metrics.", show_default="as in viewkeeper.yml"),
    ] = None,
    log: Annotated[str | None, typer.Option(help="text or json.", show_default="text on a terminal")] = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, and end.")] = False,
    allow_actions: Annotated[
        bool,
        typer.Option("--allow-actions", help="Let the console refresh, verify and pause; needs a token."),
    ] = False,
) -> None:
    """Keep the views fresh: each within its target lag, or by its schedule."""
    if log not in (None, "text", "json"):
        raise typer.BadParameter("--log is text or json")
    from viewkeeper.cli import service

    debug = bool(ctx.find_root().params.get("debug"))
    raise typer.Exit(service.run(project, listen, log, once=once, allow_actions=allow_actions, debug=debug))


@app.command()
def resume(view: View, project: ProjectFolder = None, *, json: Json = False) -> None:
    """Let the service try a view again that it suspended. Needs no Spark."""
    from viewkeeper.cli import service

    raise typer.Exit(service.resume(Output(json=json), project, view))


@app.command(short_help="Recompute views as recorded, and compare row by row.")
def verify(
    views: Views = None,
    project: ProjectFolder = None,
    *,
    constraints: Annotated[
        bool,
        typer.Option("--constraints", help="Check the declared keys and dependencies instead, whole."),
    ] = False,
    json: Json = False,
) -> None:
    """Recompute views at the recorded versions and compare, row by row."""
    from viewkeeper.cli import commands

    if constraints:
        if views:
            raise typer.BadParameter("--constraints checks tables, and takes no views")
        raise typer.Exit(commands.verify_constraints(Output(json=json), project))
    raise typer.Exit(commands.verify(Output(json=json), project, views or []))


@app.command()
def repair(view: View, project: ProjectFolder = None, *, json: Json = False) -> None:
    """Rebuild a view from the recorded versions."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.repair(Output(json=json), project, view))


@app.command()
def history(
    view: Annotated[
        str | None,
        typer.Argument(help="Only epochs that moved this view.", autocompletion=completing.views),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="At most so many.", show_default="20; with --json all"),
    ] = None,
    project: ProjectFolder = None,
    *,
    estimates: Annotated[
        bool, typer.Option("--estimates", help="What deltas of joins were estimated to hold, and held.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the epochs, newest first. Needs no Spark."""
    from viewkeeper.cli import reading

    raise typer.Exit(reading.history(Output(json=json), project, view, limit, estimates=estimates))


@app.command(short_help="Write the state and the history into one HTML file.")
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file.")] = Path(
        "viewkeeper-report.html"
    ),
    project: ProjectFolder = None,
    *,
    json: Json = False,
) -> None:
    """Write the state of the warehouse and its history into one HTML file. Needs no Spark."""
    from viewkeeper.cli.report import report as write

    raise typer.Exit(write(Output(json=json), project, output))


@app.command(short_help="Rewrite small files, and remove what old epochs left.")
def maintain(
    views: Views = None,
    project: ProjectFolder = None,
    *,
    keep_epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs that can still be read: as the views say, or 100.")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Days of which all epochs can: as the views say, or 7.")
    ] = None,
    json: Json = False,
) -> None:
    """Rewrite small files and files with many deleted rows, and remove what old epochs left."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.maintain(Output(json=json), project, views or [], keep_epochs, keep_days))


@app.command(short_help="Measure what operations take here; two minutes.")
def calibrate(project: ProjectFolder = None, *, json: Json = False) -> None:
    """Measure what operations take on this cluster, for choosing by; about two minutes."""
    from viewkeeper.cli import commands

    raise typer.Exit(commands.calibrate(Output(json=json), project))


@app.command(short_help="Look at Java, memory, jars, ledger, sources; advise.")
def doctor(
    project: ProjectFolder = None,
    *,
    spark: Annotated[
        bool, typer.Option("--spark", help="Start Spark, and ask the catalog and sources by it.")
    ] = False,
    json: Json = False,
) -> None:
    """Look at all that viewkeeper needs, and say what is missing and what to do. Changes nothing."""
    from viewkeeper.cli.doctor import doctor as look

    raise typer.Exit(look(Output(json=json), project, spark=spark))


@app.command(short_help="Show the warehouse in the browser.")
def serve(
    project: ProjectFolder = None,
    *,
    listen: Annotated[str, typer.Option(help="HOST:PORT; port 0 takes any.")] = "127.0.0.1:8787",
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Refresh and verify from the browser, with a token.")
    ] = False,
    allow_sql: Annotated[
        bool, typer.Option("--allow-sql", help="Run a SELECT from the browser, with a token.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show rows of views.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Another name by which it is called.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show the warehouse in the browser: graph, views, epochs, sources. Needs no Spark to read."""
    from viewkeeper.cli import console

    wanted = console.Wanted(listen, allow_actions, allow_sql, preview, tuple(allow_host or ()), open_browser)
    raise typer.Exit(console.serve(Output(), project, wanted))


@app.command(short_help="Make a retail warehouse, change it, refresh, compare.")
def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the table of sales.")] = 5_000_000,
    folder: Annotated[Path, typer.Option(help="Where to make the warehouse.")] = Path("demo-warehouse"),
    *,
    json: Json = False,
) -> None:
    """Make a retail warehouse, let days pass, refresh it by deltas, and compare with recomputing."""
    from viewkeeper.cli.demo import run_demo

    raise typer.Exit(run_demo(Output(json=json), folder, rows))
