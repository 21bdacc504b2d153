"""The commands: what can be asked for, and nothing of how it is done.

Every import that a command needs stands inside it: a client's tests start `mockagent acp` hundreds of times.
"""

from __future__ import annotations

import gc

gc.disable()  # what is imported stays; looking through it for garbage takes a tenth of the start. `Host` turns it on.

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import click

from mockagent import __version__
from mockagent.errors import StateError

F = TypeVar("F", bound=Callable[..., Any])

USAGE_ERROR = 2
CANNOT_SHOW = 1

_PLAYING = ("acp", "serve")
"""Commands that show nothing on standard output: it belongs to the protocol, or to nobody."""


class Commands(click.Group):
    """Mistakes in scenario files are the user's to read, whichever command meets them; so is an output that takes
    nothing. A reader who has left has read enough: nothing is said of it."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """See click."""
        given = list(sys.argv[1:] if args is None else args)
        if given and given[0] in _PLAYING:
            return super().main(args, *more, **options)
        if sys.stdout is None:  # the interpreter has found it closed
            sys.stdout = _closed()
        try:
            try:
                return super().main(args, *more, **options)
            finally:
                sys.stdout.flush()
        except (OSError, BaseExceptionGroup) as error:
            failed = _output_error(error)
            if failed is None:
                raise
            _discard()
            if failed.errno != errno.EPIPE:
                click.echo(f"mockagent: cannot write to standard output: {failed.strerror}", err=True)
            sys.exit(CANNOT_SHOW)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        from mockagent.scenario.problems import ScenarioError

        try:
            return super().invoke(ctx)
        except ScenarioError as error:
            for problem in error.problems:
                click.echo(str(problem), err=True)
            sys.exit(USAGE_ERROR)
        except OSError as error:
            if error.errno != errno.ENOSPC or ctx.invoked_subcommand not in _PLAYING:
                raise
            _fail(str(error.strerror))


def _closed() -> Any:
    """A standard output that says of every byte that it cannot be written, as a closed one does."""
    fd = os.open(os.devnull, os.O_RDONLY)
    return open(fd, "w", encoding="utf-8", closefd=False)


def _output_error(error: BaseException) -> OSError | None:
    """Why standard output takes nothing, if that is all that has happened: such an error names no file."""
    if isinstance(error, BaseExceptionGroup):
        found = [_output_error(inner) for inner in error.exceptions]
        return found[0] if all(found) else None
    return error if isinstance(error, OSError) and error.errno in _OUTPUT_ERRORS and error.filename is None else None


_OUTPUT_ERRORS = (
    errno.ENOSPC,
    errno.EBADF,
    errno.EPIPE,
    errno.EIO,
    errno.EFBIG,
    getattr(errno, "EDQUOT", errno.ENOSPC),
)


def _discard() -> None:
    """What standard output still holds goes nowhere, so that the interpreter does not try once more as it ends."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mockagent")
def main() -> None:
    """A fake AI agent for client developers: one scenario, played over ACP and AAP.

    SCENARIO is the name of a bundled scenario (see `mockagent scenarios`) or the path of a YAML file.
    """


def _chaos(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuses what cannot be read."""
    if value is not None:
        from mockagent.faults.chaos import parse

        try:
            parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value


class Factor(click.FloatRange):
    """What waits are divided or multiplied by: `nan` and `inf` are floats too, and no wait survives them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click."""
        factor = super().convert(value, param, ctx)
        if not factor < float("inf"):
            self.fail(f"{value} is no finite number.", param, ctx)
        return factor


def _playing(command: F) -> F:
    """The options that `acp` and `serve` share."""
    options = [
        click.option("--seed", type=int, help="Seed of all random choices, in place of the scenario's."),
        click.option("--speed", type=Factor(min=0), help="Divides all waits; 0 waits for nothing."),
        click.option("--state", type=click.Path(dir_okay=False), help="Keep sessions in this file, over restarts."),
        click.option("--journal", type=click.Path(dir_okay=False), help="Write a line per message to this file."),
        click.option("--report", type=click.Path(dir_okay=False), help="Write the verdict on the client to this file."),
        click.option("--strict", is_flag=True, help="Exit with 3 if the verdict is bad."),
        click.option("--allow", multiple=True, metavar="RULE", help="A rule that may be broken (repeatable)."),
        click.option(
            "--chaos", metavar="RATE[:KINDS]", callback=_chaos, help="Draw faults by chance, such as 0.05:order,wire."
        ),
        click.option("--stretch", type=Factor(min=0), default=1.0, help="Multiplies waits of bundled scenarios."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("scenario", default="demo")
@_playing
@click.option(
    "--login",
    is_flag=False,
    flag_value="",
    metavar="[METHOD]",
    help="Do what a client runs in a terminal to log in: succeed or fail as the scenario says, and play nothing.",
)
@click.option(
    "--stdio",
    "stdio",
    type=click.Choice(["auto", "poll", "threads"]),
    default="auto",
    help="How stdin and stdout are waited for.",
)
@click.option("--control", metavar="HOST:PORT", help="Serve control over HTTP there; port 0 picks a free one.")
@click.option("--control-token", metavar="TOKEN", help="Bearer token that control asks for.")
@click.option("--link", hidden=True, help="Play what a MockAgent object at this address wants.")
def acp(
    scenario: str,
    login: str | None,
    stdio: str,
    control: str | None,
    control_token: str | None,
    link: str | None,
    **playing: Any,
) -> None:
    """Play an agent over ACP on stdin and stdout: what a client launches."""
    if login is not None:
        from mockagent.acp.auth import terminal_login

        status, told = terminal_login(_open(scenario, 1.0), login)
        click.echo(told, err=status != 0)
        sys.exit(status)
    if link is not None:
        from mockagent.control.link import run_linked

        sys.exit(run_linked(link))
    from mockagent.host import run_stdio

    threaded = {"auto": None, "poll": False, "threads": True}[stdio]
    beside = None
    if control is not None:
        from mockagent.control.service import beside_stdio

        try:
            beside = beside_stdio(control, control_token)
        except ValueError as error:
            _fail(f"--control {control}: {error}")
    opened = _open(scenario, playing["stretch"])
    try:
        sys.exit(run_stdio(opened, _options(playing, threaded=threaded), beside))
    except StateError as error:
        _fail(f"--state {error}")


@main.command()
@click.argument("scenarios", nargs=-1)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free port.")
@click.option("--aap-base", default="/aap", show_default=True, help="Path below which AAP is answered.")
@click.option("--allow-origin", multiple=True, help="An origin whose pages may connect; may be given several times.")
@click.option("--control-token", metavar="TOKEN", help="Bearer token that control (/_mock) asks for.")
@_playing
def serve(
    scenarios: tuple[str, ...],
    host: str,
    port: int,
    aap_base: str,
    allow_origin: tuple[str, ...],
    control_token: str | None,
    **playing: Any,
) -> None:
    """Play agents over ACP (WebSocket) and AAP on one port."""
    from mockagent.control.service import mount
    from mockagent.host import run_server
    from mockagent.scenario.problems import check_names
    from mockagent.site import Settings

    opened = [_open(scenario, playing["stretch"]) for scenario in scenarios or ("demo",)]
    check_names(opened)
    base = "/" + aap_base.strip("/")
    settings = Settings(host=host, port=port, aap_base=base, allow_origins=allow_origin, log=True)
    try:
        control = mount(control_token, host=host, origins=allow_origin)
        sys.exit(run_server(opened, _options(playing), settings, [control]))
    except StateError as error:
        _fail(f"--state {error}")
    except OSError as error:
        way_out = "; --port 0 picks a free port" if error.errno == errno.EADDRINUSE else ""
        _fail(f"cannot listen on {host}:{port}: {error.strerror or error}{way_out}")


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
def check(paths: tuple[str, ...]) -> None:
    """Report every mistake in scenario files."""
    from mockagent.scenario.load import check as problems_of

    problems = [problem for path in paths for problem in problems_of(path)]
    for problem in problems:
        click.echo(str(problem))
    if problems:
        sys.exit(1)
    click.echo(f"{len(paths)} file{'s' * (len(paths) != 1)} checked, no mistakes", err=True)


@main.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    import json

    from mockagent.scenario.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@main.command()
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.option("--tag", multiple=True, help="Only scenarios with this tag.")
@click.option("--legality", type=click.Choice(["allowed", "violation", "unspecified"]), help="Only those.")
def scenarios(words: tuple[str, ...], as_json: bool, tag: tuple[str, ...], legality: str | None) -> None:
    """List the bundled scenarios, or print the text of one."""
    from mockagent.scenario import library

    if len(words) == 1 and words[0] in library.names():
        click.echo(library.text(words[0]), nl=False)
        return
    rows = [
        row
        for row in library.summaries()
        if set(tag) <= set(row.tags)
        and legality in (None, row.legality)
        and all(word.lower() in f"{row.name} {row.summary} {' '.join(row.tags)}".lower() for word in words)
    ]
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    elif not rows:
        _fail("no bundled scenario fits; `mockagent scenarios` lists them all")
    else:
        from mockagent.demo.tables import scenario_table

        scenario_table(rows)


@main.command()
@click.argument("scenario")
@click.option("--cwd", help="Only sessions of this folder.")
@click.option("--page", type=click.IntRange(min=1), default=1, show_default=True, help="Which page of the list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--seed", type=int, help="Seed of all random choices, in place of the scenario's.")
@click.option("--state", type=click.Path(dir_okay=False, exists=True), help="With what this file has kept.")
def sessions(scenario: str, cwd: str | None, page: int, as_json: bool, seed: int | None, state: str | None) -> None:
    """Print the sessions that a client would see."""
    from mockagent.preview import preview

    try:
        shown = preview(_open(scenario, 1.0), cwd=cwd, page=page, seed=seed, state=state)
    except StateError as error:
        _fail(f"--state {error}")
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
    else:
        from mockagent.demo.tables import session_table

        session_table(shown)


@main.command()
@click.argument("scenario", default="demo")
@click.option("--speed", type=Factor(min=0), help="Divides all waits.")
@click.option("--seed", type=int, help="Seed of all random choices.")
@click.option("--prompt", help="What the user says, in place of the demo's own words.")
def demo(scenario: str, speed: float | None, seed: int | None, prompt: str | None) -> None:
    """Watch an agent and a small client talk in the terminal; ends by itself."""
    from mockagent.demo.show import run_demo

    sys.exit(run_demo(_open(scenario, 1.0), speed=speed, seed=seed, prompt=prompt))


@main.command()
@click.argument("journal", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the scenario to this file.")
@click.option("--name", default="replay", show_default=True, help="Name of the scenario.")
def replay(journal: str, output: str | None, name: str) -> None:
    """Turn a recorded ACP conversation into a scenario that plays it again.

    JOURNAL is what `--journal` wrote, or lines of `{time, direction, message}` from elsewhere.
    """
    from mockagent.replay import RecordingError, replayed

    try:
        text, left_out = replayed(journal, name=name)
    except (RecordingError, OSError) as error:
        _fail(str(error))
    for sentence in left_out:
        click.echo(f"mockagent: left out: {sentence}", err=True)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        _fail(f"cannot write {output}: {error.strerror}")


def _open(argument: str, stretch: float) -> Any:
    """The scenario that an argument means."""
    from mockagent.scenario import library

    scenario = library.open_scenario(argument)
    if stretch != 1.0 and library.is_bundled(scenario):
        from mockagent.scenario.stretch import stretched

        return stretched(scenario, stretch)
    return scenario


def _options(playing: dict[str, Any], *, threaded: bool | None = None) -> Any:
    from mockagent.host import Options

    _refuse_unwritable("--journal", playing["journal"])
    _refuse_unwritable("--report", playing["report"])
    return Options(threaded=threaded, **playing)


def _refuse_unwritable(option: str, path: str | None) -> None:
    """Says it before anything is played: afterwards nobody can have what was meant to be in the file."""
    if path is not None:
        from mockagent.watch.writable import why_not

        why = why_not(path)
        if why is not None:
            _fail(f"{option} {path}: it cannot be written: {why}")


def _fail(message: str) -> NoReturn:
    click.echo(f"mockagent: {message}", err=True)
    sys.exit(USAGE_ERROR)
