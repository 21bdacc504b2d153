"""Puts a process together: scenarios become worlds and agents on one stage, with their faults and taps.

The one place that knows everything and decides nothing. `cli` and `testing` call it; what happens afterwards is the
business of the parts.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from mockagent.faults.interface import Faults, NoFaults
from mockagent.message import Message, Peer
from mockagent.scenario import model
from mockagent.script.agent import Agent
from mockagent.script.driver import drive
from mockagent.script.placeholders import Scope, fill
from mockagent.script.stage import Stage
from mockagent.watch.audit import Audit
from mockagent.watch.expect import Expect
from mockagent.watch.redact import Redactor
from mockagent.watch.report import Report
from mockagent.watch.rule import Rule
from mockagent.watch.tap import Tap, Taps
from mockagent.wire.backstage import Backstage
from mockagent.world.clock import SECOND, Clock
from mockagent.world.seeds import Seeds
from mockagent.world.world import World

if TYPE_CHECKING:
    from mockagent.faults.engine import Spot
    from mockagent.site import Settings


CLIENT_VERDICT = 3
"""Exit status when the client broke a rule or missed an expectation, with `strict`."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line may say beside the scenario.

    Attributes:
        seed: in place of the scenario's.
        speed: in place of `clock.speed`.
        journal: file for the journal.
        report: file for the verdict on the client.
        strict: a broken rule or a missed expectation makes exit status 3.
        allow: ids of rules that may be broken.
        stretch: multiplies the waits of bundled scenarios.
        threaded: forces the thread-based variant of stdio on or off.
    """

    seed: int | None = None
    speed: float | None = None
    journal: str | None = None
    report: str | None = None
    strict: bool = False
    allow: tuple[str, ...] = ()
    stretch: float = 1.0
    threaded: bool | None = None


class Host:
    """One process' worth of mockagent.

    Args:
        scenarios: one for each agent; the first one's clock, seed and faults on shared endpoints count.
        options: see there.
        taps: further taps, such as a journal in memory.
        armed: faults may be armed later, so that the engine has to be there from the start.
    """

    def __init__(
        self,
        scenarios: Sequence[model.Scenario],
        options: Options,
        *,
        taps: Sequence[Tap] = (),
        armed: bool = False,
    ) -> None:
        self.scenarios = list(scenarios)
        self.options = options
        rules = self.scenarios[0].clock
        if options.speed is not None:
            rules = model.ClockRules(now=rules.now, speed=options.speed)
        self.clock = Clock(rules, monotonic=trio.current_time)
        self.stage = Stage(self.clock)
        self.redactor = Redactor([token for scenario in self.scenarios for token in scenario.agent.auth.tokens])
        self.report = self._report()
        self.taps = Taps(*self._own_taps(), *taps)
        self.taps.flush()
        self.ids = Seeds(self.scenarios[0].seed if options.seed is None else options.seed).rng("session ids")
        self.agents = [self._agent(scenario) for scenario in self.scenarios]
        self.faults: Faults = self._faults(armed)
        self.exit_status = 0
        self.backstage = Backstage(
            self.stage,
            self.agents,
            self.faults,
            self.taps,
            exit=self.exit,
            chance=self.agents[0].world.seeds.rng("faults"),
        )

    # --- putting together

    def _own_taps(self) -> list[Tap]:
        taps: list[Tap] = []
        if self.options.journal is not None:
            from mockagent.watch.journal import Journal

            taps.append(Journal(self.options.journal, lambda: self.clock.now() / SECOND, self.redactor))
        return [*taps, self.report.audit, self.report.expect, self.report]

    def _report(self) -> Report:
        scenario = self.scenarios[0]
        audit = Audit(self.rules, self.options.allow, self.redactor)
        for name in audit.unknown():
            complain(f"--allow {name}: there is no such rule")
        expected = [entry for scenario in self.scenarios for entry in scenario.expect]
        expect = Expect(expected, redact=self.redactor)
        return Report(audit, expect, scenario.name, self.options.report)

    @property
    def rules(self) -> list[Rule]:
        """Every rule about the client that is played here."""
        from mockagent.acp.rules import RULES as ACP_RULES

        return list(ACP_RULES)

    def _agent(self, scenario: model.Scenario) -> Agent:
        world = World(scenario, self.clock, seed=self.options.seed, ids=self.ids)
        return Agent(world, self.stage, note=self._note, complain=complain)

    def _note(self, event: str, session: str | None, **detail: Any) -> None:
        self.taps.note(event, None, session, **detail)

    def _faults(self, armed: bool) -> Faults:
        faults = [fault for scenario in self.scenarios for fault in scenario.faults]
        if not faults and not armed:
            return NoFaults()
        from mockagent.faults.engine import Engine

        return Engine(
            faults,
            facts=self._facts,
            rng=self.agents[0].world.seeds.rng,
            fill=self._fill,
            report=self._fired,
            save=self._save,
            belongs=self._belongs,
        )

    # --- what the engine asks

    def _owner(self, session: str | None) -> Agent:
        """The agent whose session it is, the first one for what belongs to no session."""
        agent, _ = self.backstage.find(session)
        return agent or self.agents[0]

    def _belongs(self, fault: model.Fault, session: str | None, message: Message | None) -> bool:
        """Whether a fault looks at something: with several scenarios, each one's faults act on its own sessions, and
        those of the first on what belongs to no session. Faults armed at run time look at everything."""
        if len(self.scenarios) == 1:
            return True
        for agent in self.agents:
            if any(fault is own for own in agent.scenario.faults):
                return self._owner(session) is agent
        return True

    def _facts(self, session: str | None, message: Message | None) -> Mapping[str, Any]:
        agent, found = self.backstage.find(session)
        facts = (agent or self.agents[0]).facts(found)
        if message is not None and message.neutral == "turn":
            facts |= self._facts_of_prompt(message)
            facts["turn"] = found.turns + 1 if found is not None else 1
        return facts

    def _facts_of_prompt(self, message: Message) -> Mapping[str, Any]:
        """What a prompt says that has just come in, and has not reached its handler."""
        if message.peer.protocol == "acp":
            from mockagent.acp import prompts as acp

            return acp.facts(message)
        from mockagent.aap import prompts as aap

        return aap.facts(message)

    def _fill(self, value: Any, spot: Spot) -> Any:
        agent, session = self.backstage.find(spot.session)
        scope = Scope(
            (agent or self.agents[0]).world,
            session,
            prompt=session.prompt if session is not None else None,
            groups=spot.groups,
            message=spot.message.data if spot.message is not None else None,
            saved=spot.peer.saved if spot.peer is not None else None,
            value=spot.old,
        )
        return fill(value, scope)

    def _fired(self, fault: model.Fault, subject: Message | str, effects: tuple[str, ...], what: str) -> None:
        message = subject if isinstance(subject, Message) else None
        self.taps.note(
            "fault",
            message.peer if message is not None else None,
            message.session if message is not None else None,
            at=fault.at,
            place=str(fault.place),
            effects=list(effects),
            what=what,
            on=message.kind if message is not None else subject,
            **({"shorthand": fault.shorthand} if fault.shorthand is not None else {}),
        )

    def _save(self, peer: Peer | None, session: str | None, name: str, value: Any) -> None:
        _, found = self.backstage.find(session)
        if found is not None:
            found.saved[name] = value
        elif peer is not None:
            peer.saved[name] = value

    # --- running

    async def stdio(self) -> int:
        """Plays the first scenario over stdin and stdout until the client leaves; returns the exit status."""
        from mockagent.acp.stdio import serve_stdio
        from mockagent.net.stdio import open_stdio

        _loaded()
        self.backstage.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._signals, nursery.cancel_scope.cancel)
            nursery.start_soon(drive, self.stage)
            with open_stdio(threaded=self.options.threaded) as streams:
                await serve_stdio(self.backstage, self.agents[0], streams.receive, streams.send)
            nursery.cancel_scope.cancel()
        self.close()
        return self.exit_status

    async def serve(self, settings: Settings, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Serves ACP and AAP on one port until a signal comes.

        Args:
            settings: address, paths and origins.
            task_status: gets the port once connections are accepted.

        Raises:
            OSError: the address cannot be listened on.
        """
        from mockagent.site import Site

        _loaded()
        self.backstage.start()
        site = Site(self.backstage, settings)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, self.stage)
            nursery.start_soon(self._signals, site.stop)
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
                    life = self.faults.lifecycle("sigterm", None)
                    if life is not None and life.ignore:
                        continue
                stop()
                return

    def exit(self, code: int) -> None:
        """Ends the process at once, because a fault says so: with a code, or (negative) by a signal."""
        self.close()
        sys.stderr.flush()
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code if code >= 0 else 1)

    def close(self) -> None:
        """Writes what the taps still hold, and settles the verdict on the client."""
        self.taps.close()
        if self.report.failed:
            sys.stderr.write(self.report.text() + "\n")
            if self.options.strict:
                self.exit_status = CLIENT_VERDICT


def _loaded() -> None:
    """What was loaded so far stays for good; garbage is collected from here on (`cli` has put it off)."""
    gc.freeze()
    gc.enable()


def complain(text: str) -> None:
    """One line for the person at the terminal."""
    sys.stderr.write(f"mockagent: {text}\n")
    sys.stderr.flush()


def run_stdio(scenario: model.Scenario, options: Options) -> int:
    """Plays a scenario over stdin and stdout; returns the exit status."""

    async def main() -> int:
        return await Host([scenario], options).stdio()

    return trio.run(main)


def run_server(scenarios: Sequence[model.Scenario], options: Options, settings: Settings) -> int:
    """Serves scenarios on one port; returns the exit status.

    Raises:
        OSError: the address cannot be listened on.
    """

    async def main() -> int:
        host = Host(scenarios, options)
        async with trio.open_nursery() as nursery:
            port = await nursery.start(partial(host.serve, settings))
            shown = f"[{settings.host}]" if ":" in settings.host else settings.host
            sys.stderr.write(f"listening on http://{shown}:{port}\n")
            sys.stderr.flush()
        return host.exit_status

    return trio.run(main)
