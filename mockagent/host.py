"""Puts a process together: scenarios become worlds and agents on one stage, with their faults and taps.

The one place that knows everything and decides nothing. `cli` and `testing` call it; what happens afterwards is the
business of the parts.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from mockagent.aap import secrets
from mockagent.errors import StateError
from mockagent.faults.interface import Faults, NoFaults
from mockagent.message import Protocol
from mockagent.scenario import model
from mockagent.script.agent import Agent
from mockagent.script.driver import drive
from mockagent.script.stage import Stage
from mockagent.watch.audit import Audit
from mockagent.watch.expect import Expect
from mockagent.watch.redact import Redactor
from mockagent.watch.report import Report
from mockagent.watch.rule import Rule
from mockagent.watch.stderr import last_words, to_stderr
from mockagent.watch.tap import Tap, Taps
from mockagent.wire.backstage import Backstage
from mockagent.world.clock import SECOND, Clock
from mockagent.world.ids import Ids
from mockagent.world.seeds import Seeds
from mockagent.world.world import World

if TYPE_CHECKING:
    from mockagent.faults.engine import Engine
    from mockagent.site import Handler, Settings
    from mockagent.watch.memory import Memory
    from mockagent.world.storage import Store

Beside = Callable[..., Awaitable[Any]]
"""Started with the host as its only argument, and ready (`task_status`) before anything is read: a second way in."""

Mount = Callable[["Host"], "tuple[str, Handler]"]
"""Makes, for a host, a path prefix and who answers below it."""

CLIENT_VERDICT = 3
"""Exit status when the client broke a rule or missed an expectation, with `strict`."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line may say beside the scenario.

    Attributes:
        seed: in place of the scenario's.
        speed: in place of `clock.speed`.
        state: file in which sessions are kept.
        journal: file for the journal.
        report: file for the verdict on the client.
        strict: a broken rule or a missed expectation makes exit status 3.
        allow: ids of rules that may be broken.
        stretch: multiplies the waits of bundled scenarios.
        threaded: forces the thread-based variant of stdio on or off.
        quiet: the verdict is not told on stderr.
        chaos: `RATE` or `RATE:KINDS`: faults that are drawn by chance (`faults.chaos.parse`).
    """

    seed: int | None = None
    speed: float | None = None
    state: str | None = None
    journal: str | None = None
    report: str | None = None
    strict: bool = False
    allow: tuple[str, ...] = ()
    stretch: float = 1.0
    threaded: bool | None = None
    quiet: bool = False
    chaos: str | None = None


class Host:
    """One process' worth of mockagent.

    Args:
        scenarios: one for each agent; the first one's clock, seed and faults on shared endpoints count.
        options: see there.
        taps: further taps.
        armed: it will be controlled while it plays: faults may be armed, and the journal is kept in memory too.
        exit: what happens in place of the end of the process, which then belongs to somebody else: its signals, its
            garbage and its stderr are left alone.
        protocols: what may be spoken, so that nothing is loaded for what will not.

    Attributes:
        memory: the journal in memory, if `armed`.
        armed: the faults that were armed while it played, by id.
        fired: called with the id of such a fault whenever it has fired.
        told: the time of what is noted, where another process tells of it (microseconds); None: it is now.
    """

    def __init__(
        self,
        scenarios: Sequence[model.Scenario],
        options: Options,
        *,
        taps: Sequence[Tap] = (),
        armed: bool = False,
        exit: Callable[[int], None] | None = None,
        protocols: Sequence[Protocol] = ("acp", "aap"),
    ) -> None:
        self.scenarios = list(scenarios)
        self.options = options
        self.guest = exit is not None
        self.memory: Memory | None = None
        self.armed: dict[str, model.Fault] = {}
        self.fired: Callable[[str], None] = _nobody
        self.told: int | None = None
        self._controlled = armed
        self._protocols = protocols
        self._arms = 0
        self.clock = Clock(self._time(), monotonic=trio.current_time)
        self.stage = Stage(self.clock)
        self.redactor = Redactor(secrets.values(self.scenarios), secrets.pointers(self.scenarios))
        self.report = self._report()
        self.taps = Taps(*self._own_taps(), *taps)
        self.taps.flush()
        self.store = self._open_store()
        self.ids = self._new_ids()
        self.agents = [self._agent(scenario, number) for number, scenario in enumerate(self.scenarios)]
        self.faults: Faults = self._faults()
        self.exit_status = 0
        self.backstage = Backstage(
            self.stage,
            self.agents,
            self.faults,
            self.taps,
            exit=exit or self.exit,
            chance=self.agents[0].world.seeds.rng("faults"),
        )
        self.backstage.keep = self._keep

    # --- putting together

    def _own_taps(self) -> list[Tap]:
        taps: list[Tap] = []
        if self.options.journal is not None:
            from mockagent.watch.journal import Journal

            taps.append(Journal(self.options.journal, self._now, self.redactor))
        if self._controlled:
            from mockagent.watch.memory import Memory

            self.memory = Memory(self._now, self.redactor)
            taps.append(self.memory)
        return [*taps, self.report.audit, self.report.expect, self.report]

    def _now(self) -> float:
        """The time of what is being noted, seconds since the epoch."""
        return (self.clock.now() if self.told is None else self.told) / SECOND

    def _time(self) -> model.ClockRules:
        rules = self.scenarios[0].clock
        if self.options.speed is None:
            return rules
        return model.ClockRules(now=rules.now, speed=self.options.speed)

    def _new_ids(self) -> Ids:
        ids = Ids(Seeds(self._seed()).rng("session ids"))
        if self.store is not None:
            ids.count = self.store.next_number
        return ids

    def _open_store(self) -> Store | None:
        """The state file, if one is wanted.

        Raises:
            StateError: it cannot be used.
        """
        if self.options.state is None:
            return None
        from mockagent.world.storage import open_store

        seeds = [self._seed(number) for number in range(len(self.scenarios))]
        return open_store(self.options.state, self.scenarios, seeds, self.clock)

    def _keep(self, final: bool) -> None:
        """What has changed is in the state file before anybody is told of it; if it cannot be, nobody is told."""
        if self.store is None:
            return
        try:
            self.store.commit(self.clock.now(), final=final)
        except StateError as error:
            to_stderr(str(error))
            self.store.close()
            self.store = None
            self.backstage.exit(1)

    def _report(self) -> Report:
        scenario = self.scenarios[0]
        audit = Audit(self.rules, self.options.allow, self.redactor)
        for name in audit.unknown():
            to_stderr(f"--allow {name}: there is no such rule")
        expect = Expect(self._expected(), redact=self.redactor)
        return Report(audit, expect, scenario.name, self.options.report)

    @property
    def rules(self) -> list[Rule]:
        """Every rule about the client that may be played here."""
        from mockagent.acp.rules import RULES as ACP_RULES

        if "aap" not in self._protocols:
            return list(ACP_RULES)
        from mockagent.aap.rules import RULES as AAP_RULES

        return [*ACP_RULES, *AAP_RULES]

    def _expected(self) -> list[model.Expectation]:
        return [entry for scenario in self.scenarios for entry in scenario.expect]

    def _agent(self, scenario: model.Scenario, number: int) -> Agent:
        return Agent(self._world(scenario, number), self.stage, note=self._note, complain=to_stderr)

    def _world(self, scenario: model.Scenario, number: int) -> World:
        born = None if self.store is None else self.store.born
        world = World(scenario, self.clock, seed=self._seed(number), ids=self.ids, born=born)
        if self.store is not None:
            self.store.attach(number, world.sessions, scenario.agent)
        return world

    def _seed(self, number: int = 0) -> int:
        """The seed of an agent: the first one's is that of the process, and the others have theirs from it, so that
        what each of them invents is its own."""
        seed = self.scenarios[0].seed if self.options.seed is None else self.options.seed
        return seed if number == 0 else Seeds(seed).fresh(f"agent {number}").getrandbits(48)

    def _note(self, event: str, session: str | None, **detail: Any) -> None:
        self.taps.note(event, None, session, **detail)

    def _faults(self) -> Faults:
        faults = [fault for scenario in self.scenarios for fault in scenario.faults]
        if not faults and not self._controlled and self.options.chaos is None:
            return NoFaults()
        from mockagent.outside import Outside

        outside = Outside(self.agents, lambda session: self.backstage.find(session), self.taps, self._fired)
        return outside.engine(faults, self.options.chaos)

    def _fired(self, fault: model.Fault) -> None:
        for id, own in self.armed.items():
            if own is fault:
                self.fired(id)

    # --- while it plays

    @property
    def engine(self) -> Engine:
        """The engine of a host that may be controlled."""
        from mockagent.faults.engine import Engine

        assert isinstance(self.faults, Engine)
        return self.faults

    def arm(self, fault: model.Fault, id: str | None = None) -> str:
        """Arms a fault behind all others; returns its id."""
        if id is None:
            self._arms += 1
            id = f"f{self._arms}"
        self.armed[id] = fault
        self.engine.arm(fault)
        return id

    def disarm(self, id: str | None = None) -> bool:
        """Takes out a fault that `arm` has put in, or all of those. False: there is none of that id."""
        gone = list(self.armed) if id is None else [id] if id in self.armed else []
        for name in gone:
            self.engine.disarm(self.armed.pop(name))
        return bool(gone)

    def restart(self, scenarios: Sequence[model.Scenario] | None = None) -> None:
        """Everything as it was at the start: sessions, turns, faults, clock, journal, verdict. Connections stay.

        Args:
            scenarios: are played from now on, one for each agent; None: the same as before.
        """
        self.halt()
        self.backstage.write_off()
        self.taps.note("restart")  # the journal on disk goes on, and says where everything began anew
        self.scenarios = list(scenarios or self.scenarios)
        for scenario in self.scenarios:
            for secret in secrets.values([scenario]):
                self.redactor.learn(secret)
        self.redactor.learn_places(secrets.pointers(self.scenarios))
        self.clock.restart(self._time())
        self.ids = self._new_ids()
        for number, (agent, scenario) in enumerate(zip(self.agents, self.scenarios, strict=True)):
            agent.restart(self._world(scenario, number))
        self.armed.clear()
        self.faults = self._faults()
        self.backstage.restart(self.faults, self.agents[0].world.seeds.rng("faults"))
        self.report.restart(self.scenarios[0].name, self._expected())
        if self.memory is not None:
            self.memory.restart()

    def halt(self) -> None:
        """Ends all that plays; what it leaves behind in the lines still has to be written."""
        for agent in self.agents:
            agent.stop_all()
        self.stage.clear()

    # --- running

    async def stdio(self, beside: Beside | None = None) -> int:
        """Plays the first scenario over stdin and stdout until the client leaves; returns the exit status.

        Args:
            beside: runs as long; ready before the first byte is read.
        """
        from mockagent.acp.stdio import serve_stdio
        from mockagent.net.stdio import open_stdio

        _loaded()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._signals, nursery.cancel_scope.cancel)
            nursery.start_soon(drive, self.stage)
            self.backstage.tasks = nursery
            if beside is not None:
                await nursery.start(beside, self)
            self.backstage.start()
            with open_stdio(threaded=self.options.threaded) as streams:
                await serve_stdio(self.backstage, self.agents[0], streams.receive, streams.send)
            nursery.cancel_scope.cancel()
        self.close()
        return self.exit_status

    async def serve(
        self,
        settings: Settings,
        mounts: Sequence[Mount] = (),
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serves ACP and AAP on one port until a signal comes.

        Args:
            settings: address, paths and origins.
            mounts: who else answers on this port.
            task_status: gets the port once connections are accepted.

        Raises:
            OSError: the address cannot be listened on.
        """
        from mockagent.site import Site

        _loaded()
        self.backstage.start()
        site = Site(self.backstage, settings, [mount(self) for mount in mounts])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, self.stage)
            nursery.start_soon(self._signals, site.stop)
            self.backstage.tasks = nursery
            async with trio.open_nursery() as serving:
                task_status.started(await serving.start(site.run))
            nursery.cancel_scope.cancel()
        self.close()

    async def _signals(self, stop: Callable[[], None]) -> None:
        """SIGTERM and SIGINT end the process in order, unless a fault lets them pass unnoticed."""
        wanted = [signal.SIGINT, signal.SIGTERM]
        with trio.open_signal_receiver(*wanted) as arrived:
            async for number in arrived:
                self.backstage.note("signal", None, None, signal=signal.Signals(number).name)
                if number == signal.SIGTERM:
                    life = self.backstage.everywhere("sigterm")
                    if life is not None and life.ignore:
                        continue
                stop()
                return

    def exit(self, code: int) -> None:
        """Ends the process at once, because a fault says so: with a code, or (negative) by a signal."""
        self.close()
        sys.stderr.flush()
        if code < 0:
            with suppress(OSError, ValueError):  # SIGKILL has no handler to be taken off
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code if code >= 0 else 1)

    def close(self) -> None:
        """Writes what the taps and the state file still lack, and settles the verdict on the client."""
        self.taps.close()
        self._keep(True)
        if self.store is not None:
            self.store.close()
            self.store = None
        if self.report.failed and not self.guest:
            if not self.options.quiet:
                last_words(self.report.text() + "\n")
            if self.options.strict:
                self.exit_status = CLIENT_VERDICT


def _loaded() -> None:
    """What was loaded so far stays for good; garbage is collected from here on (`cli` has put it off)."""
    gc.freeze()
    gc.enable()


def _nobody(id: str) -> None:
    """Nobody wants to know that a fault has fired."""


def run_stdio(
    scenario: model.Scenario, options: Options, beside: Beside | None = None, *, taps: Sequence[Tap] = ()
) -> int:
    """Plays a scenario over stdin and stdout; returns the exit status.

    Args:
        scenario: what to play.
        options: see there.
        beside: see `Host.stdio`; the host can then be controlled while it plays.
        taps: further taps.
    """
    from mockagent.net.stdio import fill_standard_files

    fill_standard_files()

    async def main() -> int:
        armed = beside is not None
        return await Host([scenario], options, taps=taps, armed=armed, protocols=("acp",)).stdio(beside)

    return trio.run(main)


def run_server(
    scenarios: Sequence[model.Scenario], options: Options, settings: Settings, mounts: Sequence[Mount] = ()
) -> int:
    """Serves scenarios on one port; returns the exit status. With `mounts` the host can be controlled while it plays.

    Raises:
        OSError: the address cannot be listened on.
    """

    async def main() -> int:
        host = Host(scenarios, options, armed=bool(mounts))
        async with trio.open_nursery() as nursery:
            port = await nursery.start(partial(host.serve, settings, mounts))
            sys.stderr.write(_addresses(scenarios, settings, port))
            sys.stderr.flush()
        return host.exit_status

    from mockagent.net.sockets import allow_many

    allow_many()
    try:
        return trio.run(main)
    except BaseExceptionGroup as group:
        raise _only(group) from None


def _addresses(scenarios: Sequence[model.Scenario], settings: Settings, port: int) -> str:
    """What `serve` prints once it accepts connections; the first line is for programs to read."""
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    lines = [f"listening on http://{shown}:{port}"]
    for number, scenario in enumerate(scenarios):
        path = f"/acp/{scenario.name}" if number else "/acp"
        lines.append(f"  ACP  ws://{shown}:{port}{path}  http://{shown}:{port}{path}  ({scenario.name})")
    lines.append(f"  AAP  http://{shown}:{port}{settings.aap_base}")
    return "\n".join(lines) + "\n"


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception in nested groups; with several, the group."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found
