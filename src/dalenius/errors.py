"""Everything that can go wrong, as one tree.

```
DaleniusError                   code                  exit  HTTP
├── InputError                  input.invalid            2   400
│   ├── UnknownReceiptError                                  404
│   └── UnknownTokenError                                    404
├── PolicyError
│   ├── PolicyInvalidError      policy.invalid           2   422
│   ├── UnknownTableError       policy.unknown-table     3   404
│   ├── UnknownColumnError      policy.unknown-column    3   404
│   └── NotAllowedError         policy.not-allowed       3   422
│       └── OtherHomeError
├── QuestionError
│   ├── SqlSyntaxError          sql.syntax               2   400
│   └── QuestionRefusedError    sql.refused              3   422
├── BudgetError                 budget.exhausted         4   402
├── LedgerError
│   ├── LedgerCorruptError      ledger.corrupt           6   500
│   └── LedgerUnavailableError  ledger.unavailable       5   503
├── SourceError
│   ├── SourceUnavailableError  source.unavailable       5   503
│   │   ├── HomeMissingError
│   │   ├── ExtraMissingError
│   │   └── PartyGoneError
│   └── SourceChangedError      source.changed           5   409
├── EngineError
│   ├── EngineFailedError       engine.failed            5   503
│   └── EngineTimeoutError      engine.timeout           5   503
├── AuthError
│   ├── AuthMissingError        auth.missing             3   401
│   └── AuthDeniedError         auth.denied              3   403
├── RateLimitedError            rate.limited             3   429
├── ReportInvalidError          report.invalid           2   400
├── PartyRefusedError           joint.refused            6   502
└── InternalError               internal                 1   500
```

A class without a code is there to be caught, not raised. Codes, exit codes and HTTP statuses are promises.

An error tells four things: what happened, why, what to do, what it cost. None of them may hold a value from
the data: an error message is an output like any other, and nobody has paid for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple


class Charge(NamedTuple):
    """What the failed request cost; failures after the ledger was charged are never refunded."""

    epsilon: float = 0
    delta: float = 0


class Fits(NamedTuple):
    """The largest request of the same shape that would have passed."""

    epsilon: float


class Place(NamedTuple):
    """Where in the text of the question, both counted from 1."""

    line: int
    column: int


NOTHING = Charge()
UNKNOWN = Charge(math.nan, math.nan)  # the answer was lost on its way, and with it what it cost


class DaleniusError(Exception):
    """Root of all errors that are meant for the user.

    Attributes:
        message: What happened.
        why: The rule or circumstance behind it.
        fix: What the user can do now.
        charge: What it cost.
        fits: What would have passed, where that is known.
        at: The place in the question, where there is one.
        alarm: What the owner is told where this ends a question that was charged; "" where that is nobody's concern.
        resumable: What was charged can still be answered: the question stays open for who takes it up again.
    """

    code: ClassVar[str]
    exit_code: ClassVar[int]
    status: ClassVar[int]
    alarm: str = ""
    resumable: bool = False

    def __init__(
        self,
        message: str,
        *,
        why: str,
        fix: str,
        charge: Charge = NOTHING,
        fits: Fits | None = None,
        at: Place | None = None,
    ) -> None:
        if not hasattr(type(self), "code"):
            raise TypeError(f"{type(self).__name__} is a group of errors: raise one of its subclasses.")
        super().__init__(message)
        self.message = message
        self.why = why
        self.fix = fix
        self.charge = charge
        self.fits = fits
        self.at = at

    @property
    def cost(self) -> str:
        """What it cost, as a sentence."""
        if self.charge == NOTHING:
            return "No budget was spent."
        if not math.isfinite(self.charge.epsilon):
            return "Whether it was charged is not known."
        return f"It cost epsilon = {self.charge.epsilon:g}, delta = {self.charge.delta:g}."

    def __str__(self) -> str:
        return " ".join(sentence(part) for part in (self.message, self.why, self.fix, self.cost) if part)

    def to_dict(self) -> dict[str, Any]:
        """The one shape in which errors leave: `--json`, HTTP and receipts of failure share it."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "why": self.why,
                "fix": self.fix,
                "charge": _finite(self.charge._asdict()),
                "fits": None if self.fits is None else _finite(self.fits._asdict()),
                "at": None if self.at is None else self.at._asdict(),
            }
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> DaleniusError:
        """The error that `to_dict` wrote, or that a server's problem tells: of the class that owns its code.

        Raises:
            InputError: It is neither.
        """
        found = data.get("error", data)
        kinds = {each.code: each for each in _subclasses(DaleniusError) if "code" in vars(each)}
        kind = kinds.get(found["code"]) if isinstance(found, Mapping) and isinstance(found.get("code"), str) else None
        words = [found.get(name) for name in ("message", "why", "fix")] if kind is not None else []
        if kind is None or not all(isinstance(each, str) for each in words):
            raise InputError("This is not an error.", why="It has no code that is known.", fix="Upgrade dalenius.")
        message, why, fix = map(str, words)
        charge, fits, at = (_numbers(found.get(name)) for name in ("charge", "fits", "at"))
        return kind(
            message,
            why=why,
            fix=fix,
            charge=Charge(charge.get("epsilon", math.nan), charge.get("delta", math.nan)) if charge else NOTHING,
            fits=Fits(fits["epsilon"]) if math.isfinite(fits.get("epsilon", math.nan)) else None,
            at=_place(at),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by calling the class with `args`, which keyword-only arguments break;
        # errors must survive the way back from a worker process.
        return _restore, (type(self), self.args, self.__dict__)


class InputError(DaleniusError):
    """An argument, option or file that cannot be read as what it should be."""

    code, exit_code, status = "input.invalid", 2, 400


class UnknownReceiptError(InputError):
    """No receipt with this id was given, or not to who asks for it."""

    status = 404


class UnknownTokenError(InputError):
    """No token has this id."""

    status = 404


class PolicyError(DaleniusError):
    """About the owner's policy."""


class PolicyInvalidError(PolicyError):
    """The policy itself is malformed or contradicts itself."""

    code, exit_code, status = "policy.invalid", 2, 422


class UnknownTableError(PolicyError):
    """No policy in force names this table."""

    code, exit_code, status = "policy.unknown-table", 3, 404


class UnknownColumnError(PolicyError):
    """The table's policy does not name this column."""

    code, exit_code, status = "policy.unknown-column", 3, 404


class NotAllowedError(PolicyError):
    """The policy forbids what was asked."""

    code, exit_code, status = "policy.not-allowed", 3, 422


class OtherHomeError(NotAllowedError):
    """Another home stands in the way: it has protected these files, or nobody can tell whether it has.

    Which home it is does not stand in the words: they reach owners far away, to whom other projects are no concern.

    Attributes:
        home: Where it lies, for who is at this machine; None where that is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        why: str,
        fix: str,
        charge: Charge = NOTHING,
        fits: Fits | None = None,
        at: Place | None = None,
        home: Path | None = None,
    ) -> None:
        super().__init__(message, why=why, fix=fix, charge=charge, fits=fits, at=at)
        self.home = home


class QuestionError(DaleniusError):
    """About the text of a question."""


class SqlSyntaxError(QuestionError):
    """The question is not SQL that we can parse."""

    code, exit_code, status = "sql.syntax", 2, 400


class QuestionRefusedError(QuestionError):
    """The question parses, but its shape is not one that can be answered privately."""

    code, exit_code, status = "sql.refused", 3, 422


class BudgetError(DaleniusError):
    """The charge does not fit into what is left."""

    code, exit_code, status = "budget.exhausted", 4, 402


class LedgerError(DaleniusError):
    """About the record of charges."""


class LedgerCorruptError(LedgerError):
    """The ledger's history does not verify."""

    code, exit_code, status = "ledger.corrupt", 6, 500


class LedgerUnavailableError(LedgerError):
    """The ledger cannot be reached or locked, so nothing may be answered."""

    code, exit_code, status = "ledger.unavailable", 5, 503


class SourceError(DaleniusError):
    """About something outside: a file, a folder, a package, a server."""


class SourceUnavailableError(SourceError):
    """Something outside is missing or down."""

    code, exit_code, status = "source.unavailable", 5, 503


class HomeMissingError(SourceUnavailableError):
    """No home folder was found.

    Attributes:
        looked_in: The folders that were tried, in order.
    """

    def __init__(self, message: str, *, why: str, fix: str, looked_in: tuple[str, ...]) -> None:
        super().__init__(message, why=why, fix=fix)
        self.looked_in = looked_in


class ExtraMissingError(SourceUnavailableError):
    """A feature needs packages that the base install leaves out.

    Attributes:
        extra: Name of the extra that brings them.
        modules: The modules that are missing.
    """

    def __init__(self, extra: str, modules: tuple[str, ...]) -> None:
        super().__init__(
            f"This needs the extra '{extra}'.",
            why=f"The base install stays light and leaves out {' and '.join(modules)}.",
            fix=f"Run: pip install 'dalenius[{extra}]'",
        )
        self.extra = extra
        self.modules = modules


class PartyGoneError(SourceUnavailableError):
    """A party of a joint computation cannot be reached, or is silent.

    Attributes:
        party: Its name.
    """

    def __init__(self, party: str, *, why: str, fix: str) -> None:
        super().__init__(f"The party '{party}' is gone.", why=why, fix=fix)
        self.party = party


class SourceChangedError(SourceError):
    """The data is no longer what the policy was recorded for."""

    code, exit_code, status = "source.changed", 5, 409
    alarm = "source changed"


class EngineError(DaleniusError):
    """About the database that computes exact answers."""

    alarm = "failed"


class EngineFailedError(EngineError):
    """The engine gave up on a plan that it should be able to run."""

    code, exit_code, status = "engine.failed", 5, 503


class EngineTimeoutError(EngineError):
    """The answer was not ready when it had to leave."""

    code, exit_code, status = "engine.timeout", 5, 503


class AuthError(DaleniusError):
    """About who is asking."""


class AuthMissingError(AuthError):
    """No token, or one that nobody issued."""

    code, exit_code, status = "auth.missing", 3, 401


class AuthDeniedError(AuthError):
    """The token is good, but not for this."""

    code, exit_code, status = "auth.denied", 3, 403


class RateLimitedError(DaleniusError):
    """Too many requests in too short a time."""

    code, exit_code, status = "rate.limited", 3, 429


class ReportInvalidError(DaleniusError):
    """A client's report is not one that the survey's randomiser can produce."""

    code, exit_code, status = "report.invalid", 2, 400


class PartyRefusedError(DaleniusError):
    """A party of a joint computation sent what does not belong there; nothing of it was used.

    Attributes:
        party: Its name, or "" where nobody can say which it was.
    """

    code, exit_code, status = "joint.refused", 6, 502

    def __init__(self, message: str, *, why: str, fix: str, party: str = "") -> None:
        super().__init__(message, why=why, fix=fix)
        self.party = party


class InternalError(DaleniusError):
    """A bug of ours."""

    code, exit_code, status = "internal", 1, 500

    @property
    def cost(self) -> str:
        """What it cost: after a bug nobody can promise that nothing was spent."""
        return super().cost if self.charge != NOTHING else "Whatever was charged before this stays charged."


def sentence(text: str) -> str:
    """Closes `text` with a full stop unless it already ends a sentence, or ends in a command to copy."""
    return text if text.endswith((".", "!", "?", "'", "`")) else f"{text}."


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    # JSON has no NaN and no infinity.
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _numbers(data: object) -> dict[str, float]:
    """Its numbers by name; JSON's null is one that JSON lacks."""
    if not isinstance(data, Mapping):
        return {}
    plain = {name: math.nan if value is None else value for name, value in data.items()}
    return {name: value for name, value in plain.items() if type(value) in {int, float}}


def _place(at: Mapping[str, float]) -> Place | None:
    line, column = (at.get(name, math.nan) for name in ("line", "column"))
    return Place(int(line), int(column)) if math.isfinite(line) and math.isfinite(column) else None


def _subclasses(cls: type[DaleniusError]) -> Iterator[type[DaleniusError]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def _restore(cls: type[DaleniusError], args: tuple[Any, ...], state: dict[str, Any]) -> DaleniusError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error
