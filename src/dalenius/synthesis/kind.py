"""Synthetic tables, as a kind of release: one price, one charge, one look, one receipt; rows from the model are free.

What is charged is the ρ of the typed ε, as one zCDP event: the generator spends it in steps that follow from one
another, and the measurer adds them up exactly (`synthesis.rows`, with the guarantee). Stored is the fitted model.
Another analyst pays for a model of the own: which tables were measured was chosen from the data, so that noise cannot
simply be added to what another one has.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.accounting.events import Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.errors import InputError, NotAllowedError
from dalenius.ledger.key_delta import Left, default_delta
from dalenius.measuring.batches import naming_columns
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.pace import UNKNOWN, size_class
from dalenius.measuring.periods import charged_periods, paying_periods, within_periods
from dalenius.mechanisms import noise
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving
from dalenius.releasing.opened import Opened, check_open
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.whole_table import (
    NOTHING_PAID,
    Paid,
    guarantee_of,
    known_rows,
    late_of,
    paid_release,
    rows_limit,
    table_named,
    times_of,
)
from dalenius.synthesis.effort import FULL, Effort, Sizes, memory, numbers, seconds
from dalenius.synthesis.fitting import Remembering, fits
from dalenius.synthesis.known_facts import check_possible
from dalenius.synthesis.methods import Method, chosen
from dalenius.synthesis.policy_domain import PolicyDomain, domain_of
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import Limit, read_rows
from dalenius.synthesis.seeking import Shares, key_places, seek_classes, seek_keys
from dalenius.synthesis.stored import FORMAT, MOST_NUMBERS, StoredModel
from dalenius.synthesis.unit_counts import PART, count_units, read_units
from dalenius.tables.policy import Facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dalenius.ledger.requests import Answered
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.pace import Times
    from dalenius.measuring.plan import Table
    from dalenius.releasing.leaving import Asker, Look
    from dalenius.synthesis.release import SyntheticTable

SYNTHETIC = "synthetic"
_MOST_SECONDS = 24 * 3600  # that one request may keep the curator at work
_NEARLY_ALL = 0.9  # of the rows: if a model counts fewer, it says so
_MOST_NOISE = 10**9  # rows: more than that would drown any table, and more still would overflow what is fitted


class SyntheticKind(Kind):
    """Synthetic tables."""

    name: ClassVar[str] = SYNTHETIC
    verb: ClassVar[str] = "made a synthetic table of"

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        """What would be modelled, and how, from the policy alone."""
        ask = SynthesisAsk.of(request)
        with asker.own_work():
            return leaving_of(asker, ask)

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> SyntheticTable:  # noqa: ARG002
        """The stored model; rows are drawn by whoever wants some."""
        from dalenius.synthesis.release import SyntheticTable

        planned: Planned = leaving.plan
        stored, dataset = StoredModel.read(answered.content), answered.receipt.dataset
        charge = dict(NOTHING_PAID) if answered.free else dict(answered.receipt.charge)
        return SyntheticTable(
            stored,
            planned.ask.columns or stored.names,
            planned.left_out,
            planned.guarantee(stored.epsilon),
            charge,
            asker.remaining(dataset, leaving.periods),
            answered.free,
            answered.receipt.to_dict(),
            (*planned.notes, *planned.missing(stored.counted), *asker.warnings(dataset)),
            planned.table.policy.facts,
        )

    def read(self, content: bytes) -> dict[str, Any]:
        """The model."""
        return StoredModel.read(content).to_json()

    def body(self, request: Any) -> str:
        """All of it as one text."""
        return json.dumps([self.name, SynthesisAsk.of(request).to_json()], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:
        """What was asked for."""
        return {"kind": self.name, "request": SynthesisAsk.of(request).to_json()}


KIND = SyntheticKind()


def again(asker: Asker, release: str) -> SyntheticTable:
    """A synthetic table that this asker has paid for, by the number of its release. Nothing is charged."""
    from dalenius.synthesis.release import SyntheticTable

    found = model_of(asker, release)
    dataset = found.receipt.dataset
    budget = asker.ledger.budget(dataset)
    return SyntheticTable(
        found.stored,
        found.stored.names,
        {},
        guarantee_of(budget, budget.unit, found.stored.epsilon),
        dict(NOTHING_PAID),
        asker.remaining(dataset, found.periods),
        True,
        found.receipt.to_dict(),
        asker.warnings(dataset),
        facts_of(asker, found.stored.table),
    )


def facts_of(asker: Asker, table: str) -> Facts:
    """What the policy in force knows of all rows of a table; nothing, where the table is no longer there."""
    version = asker.registry.current().get(table)
    return Facts() if version is None else version.policy.facts


@dataclass(frozen=True)
class PaidModel(Paid):
    """A model that was paid for, and what its bytes are."""

    stored: StoredModel


def model_of(asker: Asker, release: str) -> PaidModel:
    """A model that this asker has paid for, by the number of its release (`paid_release`)."""
    found = paid_release(asker, release, SYNTHETIC, "synthetic table")
    return PaidModel(found.content, found.receipt, found.periods, StoredModel.read(found.content))


@dataclass(frozen=True)
class Planned:
    """A synthetic table that was planned: everything about it that is public.

    Attributes:
        ask: What was asked.
        table: Whose rows.
        domain: What is modelled.
        left_out: Columns that cannot be modelled, each with what to declare.
        method: The generator.
        effort: How much it tries out.
        limit: What one unit adds.
        periods: Those whose rows are read.
        notes: What the reader should know.
        dealt: Whether rows are dealt to made-up units.
    """

    ask: SynthesisAsk
    table: Table
    domain: PolicyDomain
    left_out: Mapping[str, str]
    method: Method
    effort: Effort
    limit: Limit
    periods: tuple[str, ...]
    notes: tuple[str, ...]
    dealt: bool = True

    @classmethod
    def of(cls, table: Table, ask: SynthesisAsk) -> Planned:
        """From the policy and what was found at `protect`. Never touches the data."""
        _check_accounting(table)
        domain, left = domain_of(table, _in_order(ask.columns, table))
        check_possible(table.policy.facts, domain)
        rows, notes = rows_limit(table, ask.rows_per_unit, average=True)
        limit = Limit(rows, table.budget.neighbors)
        method, effort = chosen(ask.method, sizes_of(table, domain, limit), ask.time)
        _check_target(ask.target, method, domain)
        if table.found is not None and table.found.rows > rows:
            less = (
                f"Rows of units that have more than {rows:,} count less each, and some may have {table.found.rows:,}: "
                "the model may count far fewer rows than there are. A larger --rows-per-unit counts more of them, "
                "with more noise."
            )
            notes = (*notes, less)
        periods = charged_periods(table, TRUE, "A synthetic table", "Ask the owner for shorter bounds of that column.")
        return cls(ask, table, domain, left, method, effort, limit, periods, notes)

    def key(self, data_version: str) -> str:
        """What identifies the model: all that decides what is measured, besides the price."""
        parts: dict[str, Any] = {
            "format": FORMAT,
            "table": self.table.policy.name,
            "columns": self.domain.to_json(),
            "method": self.method.name,
            "target": self.ask.target,
            "limit": [self.limit.rows, self.limit.bits],
            "unit": self.unit,
            "periods": list(self.periods),
        }
        if self.effort != FULL:  # what a time came to, and not the time: the same work is the same model
            parts["effort"] = self.effort.to_json()
        text = "\0".join([json.dumps(parts, sort_keys=True), self.table.meaning, data_version])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def cost(self, epsilon: float) -> ZCDP:
        """The ρ of an ε, by the budget's own conversion."""
        found = self.table.budget.filter().price(epsilon)
        if not isinstance(found, ZCDP):
            raise _pure()
        return found

    def missing(self, counted: int) -> tuple[str, ...]:
        """What to say where a model counts far fewer rows than the table has: both numbers have been released."""
        found = self.table.found
        if found is None or counted >= _NEARLY_ALL * found.row_count:
            return ()
        note = (
            f"It counts {counted:,} of about {found.row_count:,} rows, since those of units with more than "
            f"{self.limit.rows:,} count less each: "
            f"{'' if self.unit else 'totals are too small, and '}units with few rows have more say."
        )
        return (note,)

    def delta(self, epsilon: float, left: Left) -> float:
        """What finding keys takes of δ; 0 where all are declared."""
        return default_delta(self.table.budget, epsilon, left) if key_places(self.domain) else 0.0

    def event(self, epsilon: float, delta: float) -> Zcdp:
        """What is charged. A price for which there would be noise alone is refused before anybody pays it."""
        rho = Fraction(self.cost(epsilon).rho)
        if rho <= 0 or self.limit.of_table > 2 * rho * (_MOST_NOISE * self.limit.whole) ** 2:
            raise InputError(
                "The price is too small for a synthetic table.",
                why=f"The noise in every number of rows would be above {_MOST_NOISE:,}.",
                fix="Give a larger epsilon, or a smaller --rows-per-unit.",
            )
        return Zcdp(rho, delta, self.table.budget.neighbors)

    def look(self, look: Look) -> bytes:
        """Reads the rows, measures and fits: once the charge is on disk, and only then.

        Guarantee:
            δ-approximate ρ-zCDP with the ρ and δ that were charged. Keys and classes are found first (`seeking`), each
            at its share, and units are counted (`unit_counts`); the generator's `UnitMeasurer` has the ρ that is left,
            to the last part.
        """
        noise.fresh_key()
        return self.fitted(look, Fraction(self.cost(look.epsilon).rho), look.delta).content()

    def fitted(self, look: Look, rho: Fraction, delta: float) -> StoredModel:
        """The model, for all of ``rho`` and ``delta``: inside of a look."""
        shares, keys = Shares.of(self.domain), key_places(self.domain)
        where = self.where
        engine, salt, seconds = look.engine, look.salt, look.seconds
        price = rho * shares.keys, delta / max(1, len(keys))
        domain = seek_keys(self.table, self.domain, where, price, engine, salt, seconds)
        codes, weights = read_rows(self.table, domain, where, self.limit, engine, salt, seconds)
        later = self.noise_of_values(rho)
        domain, codes, spent = seek_classes(domain, codes, weights, self.limit, rho * shares.classes, later)
        spent, counts = spent + len(keys) * price[0], None
        if self.unit:
            held, habits = read_units(self.table, domain, where, engine, salt, seconds)
            counts = count_units(held, habits, self.limit.neighbors, rho * PART)
            spent += rho * PART
        measurer = Remembering(domain.domain, codes, weights, self.limit, rho - spent)
        model = self.method.fit(measurer, self.ask.target, self.effort)
        units = None if counts is None else counts.made_up(self.unit, model.rows, self.limit.rows)
        name, method = self.table.policy.name, self.method.name
        found = StoredModel(name, method, look.epsilon, float(rho), self.limit.rows, domain, model, units)
        return replace(found, measured=fits(found, measurer.measured))

    @property
    def unit(self) -> str:
        """The column that says whose a made-up row is; "" where rows are nobody's."""
        return unit_of(self.table, self.limit) if self.dealt else ""

    def noise_of_values(self, rho: Fraction) -> float:
        """About how much noise, in rows, the number of each value of a column will have."""
        own = rho * Fraction(self.method.first) / len(self.domain.columns)
        return math.sqrt(self.limit.of_table / (2 * own)) / self.limit.whole

    @property
    def sizes(self) -> Sizes:
        """What is public of the table's size."""
        return sizes_of(self.table, self.domain, self.limit)

    @property
    def seconds(self) -> float:
        """What the work takes on the machine of bench/RESULTS.md, by public sizes."""
        return seconds(self.method.count, self.sizes, self.effort)

    @property
    def memory(self) -> int:
        """Bytes that it takes at most, by public sizes."""
        return memory(self.method.count, self.sizes, self.effort)

    def times(self, speed: float) -> Times:
        """When it leaves: a function of public things alone."""
        return self.times_of(self.seconds, speed)

    def times_of(self, seconds: float, speed: float) -> Times:
        """When something leaves that takes so long on the machine of bench/RESULTS.md."""
        return times_of(self.table, seconds, speed)

    @property
    def where(self) -> Expression:
        """Which rows are read: those of the periods that pay."""
        return within_periods(self.table, self.periods)

    @property
    def paying(self) -> tuple[str, ...]:
        """The periods that pay."""
        return paying_periods(self.table, self.periods)

    @property
    def late(self) -> int:
        """After how many late releases an analyst is suspended."""
        return late_of(self.table)

    def guarantee(self, epsilon: float) -> dict[str, Any]:
        """What holds of the model, and of all rows from it."""
        return guarantee_of(self.table.budget, ", ".join(self.table.unit), epsilon)


def sizes_of(table: Table, domain: PolicyDomain, limit: Limit) -> Sizes:
    """What is public of a table's size; where nothing is, a million rows."""
    rows = sum(size_class(known_rows(each) or UNKNOWN) for each in table.relation.tables())
    sought = sum(each.sought for each in domain.columns)
    return Sizes(rows, tuple(each.column.size for each in domain.columns), sought, bool(unit_of(table, limit)))


def unit_of(table: Table, limit: Limit) -> str:
    """The column that says whose a made-up row is; "" where units have one row each, or change with periods."""
    several = limit.rows > 1 or (table.found is not None and table.found.rows > 1)
    if not several or table.budget.period is not None:
        return ""
    columns = {each.rpartition(".")[2].lower() for each in set(table.policy.columns) - naming_columns(table)}
    found = "_".join(table.unit)
    while found.lower() in columns:  # of several columns that make the unit; rows have one column of each name
        found += "_"
    return found


def leaving_of(asker: Asker, ask: SynthesisAsk) -> Leaving:
    """What is about to leave, planned and priced without the data."""
    opened = Opened.of(asker)
    planned = Planned.of(table_named(asker, ask.table, opened), ask)
    check_open(asker, *planned.table.reads)
    check_work(planned)
    snapshot = Snapshot.of(planned.table, opened.versions)
    epsilon = float(ask.epsilon)
    delta = planned.delta(epsilon, Left.of(asker.remaining(snapshot.dataset, planned.paying)))
    return Leaving(
        SYNTHETIC,
        snapshot,
        planned.key(snapshot.data_version),
        epsilon,
        planned.event(epsilon, delta),
        Pace(planned.times, planned.times(1.0).cap, planned.late),
        planned.look,
        asked=f"A synthetic table of {ask.table}: {', '.join(each.name for each in planned.domain.columns)}",
        delta=delta,
        delta_chosen=True,
        periods=planned.paying,
        plan=planned,
    )


def check_work(planned: Planned) -> None:
    """Refuses what would take too long, or more room than a model may take where it is read again.

    Some methods look at as many tables as there are triples of columns; some keep tables with all values of pairs.
    """
    if numbers(planned.method.count, planned.sizes, planned.effort) > MOST_NUMBERS:
        raise InputError(
            f"Method {planned.method.name!r} would make too large a model of {len(planned.domain.columns)} columns.",
            why="Its size follows from the numbers of columns and of their values.",
            fix="Choose fewer columns (--columns), or another method: adaptive for columns with very many values, "
            "tree for very many columns.",
        )
    if planned.times(1.0).answer > _MOST_SECONDS:
        raise InputError(
            f"Method {planned.method.name!r} would take more than a day for {len(planned.domain.columns)} columns.",
            why="Its time follows from the numbers of columns, of their values and of rows.",
            fix="Choose fewer columns (--columns), or a faster method such as tree.",
        )


def _check_target(target: str | None, method: Method, domain: PolicyDomain) -> None:
    if target is None:
        return
    if not method.takes_target:
        raise InputError(
            f"Method {method.name!r} takes no target.", why="It measures all columns alike.", fix="Leave it out."
        )
    domain.domain.place(target)


def _in_order(columns: Sequence[str], table: Table) -> list[str]:
    """Those of a request in the policy's order: in whichever they are typed, it is the same model."""
    known = list(table.policy.columns)
    return sorted(columns, key=lambda name: known.index(name) if name in known else len(known))


def _check_accounting(table: Table) -> None:
    if not isinstance(table.budget.filter().price(1.0), ZCDP):
        raise _pure()


def _pure() -> NotAllowedError:
    return NotAllowedError(
        'A budget with accounting = "pure" cannot pay for a synthetic table.',
        why="It is measured with Gaussian noise, whose promise has a δ.",
        fix='Ask a workload of counts; or have the owner choose accounting = "zcdp" for new data.',
    )
