"""What is asked of a publication: models, limits and method, as the command line, Python and HTTP give them alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError
from dalenius.tables.mistakes import nearest
from dalenius.tables.sources.homes import check_sources

if TYPE_CHECKING:
    from dalenius.anonymity.models.model import Model
    from dalenius.anonymity.roles import Roles
    from dalenius.anonymity.table import Table
    from dalenius.anonymity.transformers.republish_state import State

Progress = Callable[[float, str], None]
_M_ALONE = ("k", "l", "c", "t", "beta", "presence", "time")


@dataclass(frozen=True)
class Options:
    """What a published table must be like, and how it is made.

    Attributes:
        k: Every class has so many rows.
        l: Every class has so many different sensitive values, by `l_kind`.
        l_kind: distinct, probabilistic, entropy or recursive; by default recursive where `c` is given, else distinct.
        c: For recursive (c, l)-diversity.
        t: The distribution of sensitive values in a class is at most so far from that of the table.
        t_distance: ordered, equal or hierarchy; by default what fits the column.
        beta: No sensitive value is more than 1 + β times as frequent in a class as in the table.
        presence: How sure anybody may be that a person of `population` is in the table, at least and at most.
        population: A file of all people that the rows could be about.
        m: Classes of m different sensitive values that stay the same in every release (m-invariance).
        previous: The file that remembers them: read if it is there, and written anew.
        id: The column by which the same person is known in the next release.
        suppress: Which share of the rows may be suppressed.
        loss: What is made small: ncp, discernibility, class-size or entropy.
        time: Seconds after which the best so far is taken.
        method: optimal, mondrian, mondrian-relaxed (may split equal values), local or greedy.
    """

    k: int | None = None
    l: float | None = None  # noqa: E741 (its name everywhere)
    l_kind: str | None = None
    c: float | None = None
    t: float | None = None
    t_distance: str | None = None
    beta: float | None = None
    presence: tuple[float, float] | None = None
    population: str | None = None
    m: int | None = None
    previous: str | None = None
    id: str | None = None
    suppress: float = 0.0
    loss: str = "ncp"
    time: float | None = None
    method: str = "optimal"

    @classmethod
    def of(cls, given: Mapping[str, Any] | Options) -> Options:
        """From JSON, or as it is.

        Raises:
            InputError: It has a member that is not known, or of another type.
        """
        if isinstance(given, Options):
            return given
        known = {each.name: str(each.type) for each in fields(cls)}
        found: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                meant = nearest(name, known)
                raise InputError(
                    f"There is no option {name!r}.",
                    why=f"Known: {', '.join(known)}.",
                    fix=f"Did you mean {meant!r}?" if meant else "Leave it out.",
                )
            found[name] = _typed(name, value, known[name])
        return cls(**found)

    def to_json(self) -> dict[str, Any]:
        """All that was asked for; what was not is left out."""
        default = asdict(Options())
        return {name: value for name, value in asdict(self).items() if value != default[name]}

    def files(self) -> list[Path]:
        """The files that are read beside the table."""
        return [Path(each) for each in (self.population, self.previous) if each is not None and Path(each).exists()]

    def reads(self) -> list[Path]:
        """The files that are read and never written."""
        return [] if self.population is None else [Path(self.population)]

    def writes(self) -> list[Path]:
        """The files that are written beside the rows: what the next release of a series must know."""
        return [] if self.previous is None else [Path(self.previous)]

    def with_k(self, k: int) -> Options:
        """The same with another k."""
        return replace(self, k=k)

    def check(self) -> None:
        """Refuses what does not go together, before anything is read."""
        if self.m is None:
            for name in ("previous", "id"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"--{name} needs --m.", why="It is for releases that follow.", fix="Add --m 3, say."
                    )
            if (self.population is None) != (self.presence is None):
                raise InputError(
                    "--presence and --population belong together.",
                    why="Who could be in the table is what presence is about.",
                    fix="Give --presence MIN,MAX --population FILE.",
                )
            return
        if self.id is None:
            raise InputError(
                "--m needs --id COLUMN.",
                why="A person must be known again in the next release; the column is not published.",
                fix="Name the column that says whose a row is.",
            )
        beside = [name for name in _M_ALONE if getattr(self, name) is not None]
        if beside:
            raise InputError(
                f"--m does not go with --{beside[0]}.",
                why="A class has m rows of m different sensitive values, and that is all that it may be.",
                fix="Ask for --m alone, or leave it out.",
            )

    def models(self) -> tuple[Model, ...]:
        """The models.

        Raises:
            InputError: None is asked for, or one cannot be.
        """
        from dalenius.anonymity.models import asked
        from dalenius.anonymity.table import read_table

        population = None
        if self.population is not None:
            check_sources([Path(self.population)])
            population = read_table(Path(self.population))
        kind = self.l_kind or ("recursive" if self.c is not None else "distinct")
        found = asked(
            k=self.k,
            l=self.l,
            l_kind=kind,
            c=self.c,
            t=self.t,
            t_distance=self.t_distance,
            beta=self.beta,
            presence=self.presence,
            population=population,
        )
        if not found:
            raise InputError(
                "Nothing is asked of the table.",
                why="It would be published as it is.",
                fix="Give --k 10, say; and --l, --t or --beta for what is sensitive.",
            )
        return found

    @property
    def asks_nothing(self) -> bool:
        """Whether every table satisfies all that is asked: k = 1, l = 1, t = 1, no end of β, presence from 0 to 1."""
        low, high = self.presence or (0.0, 1.0)
        return not (
            (self.k or 1) > 1
            or (self.l or 1) > 1
            or (self.t is not None and self.t < 1)
            or (self.beta is not None and self.beta < math.inf)
            or (self.m or 1) > 1
            or low > 0
            or high < 1
        )

    @property
    def words(self) -> str:
        """What was asked for, for a history: "k = 10, l = 3 (entropy)"."""
        parts = [
            f"{name} = {getattr(self, name):g}"
            for name in ("k", "l", "c", "t", "beta", "m")
            if getattr(self, name) is not None
        ]
        if self.l is not None and self.l_kind is not None:
            place = next(at for at, each in enumerate(parts) if each.startswith("l ="))
            parts[place] += f" ({self.l_kind})"
        if self.presence is not None:
            parts.append(f"presence {self.presence[0]:g} to {self.presence[1]:g}")
        return ", ".join(parts) or "nothing"


@dataclass(frozen=True)
class Made:
    """A table that is ready to be published.

    Attributes:
        table: Its rows.
        facts: About it: rows, classes, suppressed, models, loss, seconds and more; plain JSON.
        state: What the next release must know, of m-invariance.
    """

    table: Table
    facts: dict[str, Any]
    state: State | None = None


def make(table: Table, roles: Roles, options: Options, progress: Progress | None = None) -> Made:
    """The table as it would be published. Writes nothing."""
    options.check()
    roles.check(table)
    if options.m is not None:
        return _republished(table, roles, options)
    from dalenius.anonymity.run import anonymize

    found = anonymize(
        table,
        roles,
        options.models(),
        suppress=options.suppress,
        loss=options.loss,
        method=options.method,
        time=options.time,
        progress=progress,
    )
    return Made(found.table, found.to_dict())


def _republished(table: Table, roles: Roles, options: Options) -> Made:
    from time import perf_counter

    from dalenius.anonymity.transformers.republish import republish
    from dalenius.anonymity.transformers.republish_state import State

    if options.m is None or options.id is None:
        raise RuntimeError("Options were not checked.")
    previous = None
    if options.previous is not None and Path(options.previous).exists():
        check_sources([Path(options.previous)])
        previous = State.read(Path(options.previous))
    began = perf_counter()
    found = republish(table, roles, options.m, person=options.id, previous=previous)
    met = {"model": "m-invariance", "asked": {"m": options.m}, "reached": options.m, "met": True, "column": None}
    beside = {"suppressed": 0, "models": [met], "seconds": perf_counter() - began}
    return Made(found.table, {**found.to_dict(), **beside}, found.state)


def _typed(name: str, value: Any, type_: str) -> Any:
    if value is None:
        return Options.__dataclass_fields__[name].default
    if name == "presence":
        if isinstance(value, list | tuple) and len(value) == 2 and all(_is_number(each) for each in value):
            return tuple(map(float, value))
    elif type_.startswith("str"):
        if isinstance(value, str):
            return value
    elif _is_number(value) and (not type_.startswith("int") or isinstance(value, int)):
        return value
    raise InputError(
        f"Option {name!r} cannot be read.",
        why=f"It is {type_.replace(' | None', '')}.",
        fix="Correct its value.",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
