"""Requests and answers as OpenAPI describes them. Requests are read strictly: an unknown member is a mistake."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Decimal = Annotated[str, Field(pattern=r"^[0-9]{1,30}(\.[0-9]{1,30})?$")]
Positive = Annotated[int, Field(ge=1, le=2**53)]


class LimitsIn(_Given):
    """Tighter limits of what one unit adds, for this question."""

    rows: Positive | None = None
    groups: Positive | None = None
    totals: dict[str, Annotated[float, Field(gt=0)] | Decimal] | None = Field(
        None, description="Numbers, or decimals as texts, which are taken exactly.", examples=[{"amount": "99.95"}]
    )
    units: Positive | None = None
    search: Annotated[float, Field(ge=0, le=0.5)] | None = None


PerCent = Annotated[str, Field(pattern=r"^[0-9]{1,30}(\.[0-9]{1,30})?%$")]
Amount = float | PerCent


class _Question(_Given):
    """What asking and previewing have in common."""

    sql: Annotated[str, Field(min_length=1, max_length=100_000, examples=["SELECT COUNT(*) AS n FROM visits"])]
    epsilon: float | None = Field(
        None,
        description="The price. Beside an error, the most that may be paid for it; else a quarter of what is left.",
        examples=[0.2],
    )
    error: Amount | dict[str, Amount] | None = Field(
        None,
        description="The error that is good enough, in all columns or by name: a number, or a per cent of each group.",
        examples=["2%"],
    )
    confidence: float = 0.95
    delta: float | None = None
    limits: LimitsIn | None = None
    fresh: bool = Field(default=False, description="Pay for it though it follows from own answers.")


class PreviewIn(_Question):
    """A question, and how it would be paid."""

    plan: bool = Field(default=False, description="With every step, its sensitivity and price.")


class ExplainIn(_Given):
    """A question to be explained."""

    sql: Annotated[str, Field(min_length=1, max_length=100_000, examples=["SELECT COUNT(*) AS n FROM visits"])]
    epsilon: float | None = Field(None, description="The price, if it is to be told what is charged.", examples=[0.2])
    delta: float | None = None
    limits: LimitsIn | None = None


class AskIn(_Question):
    """A question, and its price: ε, or the error that is good enough."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class WorkloadIn(_Given):
    """Many questions about one data set, and the price of all of them."""

    questions: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=100_000)]],
        Field(min_length=1, max_length=10_000, examples=[["SELECT COUNT(*) AS n FROM visits"]]),
    ]
    epsilon: float = Field(description="The price of all questions together.", examples=[1.0])
    weights: Annotated[list[float], Field(max_length=10_000)] | None = Field(
        None, description="How much an error in each question counts; by default all the same."
    )
    confidence: float = 0.95
    delta: float | None = None


class AskWorkloadIn(WorkloadIn):
    """The same, to be asked."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class SyntheticIn(_Given):
    """Whose rows a synthetic table is like, and its price."""

    table: Annotated[str, Field(min_length=1, max_length=1000, examples=["visits"])]
    epsilon: float = Field(description="The price of all of it.", examples=[1.0])
    method: str = Field("auto", description="The generator; `auto` takes the best there is.")
    columns: Annotated[list[str], Field(max_length=1000)] | None = Field(
        None, description="Those to model; none: all whose values the policy declares."
    )
    target: str | None = Field(None, description="A column that will be predicted: measured more exactly.")
    rows_per_unit: int | None = Field(None, description="So many rows of one unit count in full.")
    time: float | None = Field(None, description="Seconds of work at most, as reckoned from public sizes.")


class AskSyntheticIn(SyntheticIn):
    """The same, to be made."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class ComparisonIn(_Given):
    """Which synthetic table is compared with the real one, and the price."""

    release: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="The id of the synthetic table's receipt."
    )
    epsilon: float = Field(description="The price.", examples=[0.1])
    predict: str | None = Field(None, description="A column that a classifier is to predict in real rows.")


class CompareIn(ComparisonIn):
    """The same, to be done."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class ModelIn(_Given):
    """What a model predicts, from what, and its price."""

    table: Annotated[str, Field(min_length=1, max_length=1000, examples=["visits"])]
    target: Annotated[str, Field(min_length=1, max_length=1000, examples=["smoker"])] = Field(
        description="The column to predict."
    )
    epsilon: float = Field(description="The price of all of it.", examples=[1.0])
    model: str = Field("logistic", description="logistic (two classes or more), svm, linear or poisson.")
    features: Annotated[list[str], Field(max_length=1000)] | None = Field(
        None, description="The columns to predict from; none: all that the policy declares."
    )
    method: str = Field("auto", description="sgd (noisy steps), output (noise added once), or auto.")
    rows_per_unit: int | None = Field(None, description="So many rows of one unit are learned from at most.")
    held_out: float = Field(0.0, description="The share of units that are not learned from, to be scored.")
    batch: int | None = Field(None, description="Units in a step on average; none: by rule.")
    steps: int | None = Field(None, description="How many steps; none: by rule.")


class TrainIn(ModelIn):
    """The same, to be trained."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class ScoreIn(_Given):
    """Which model is scored on the units held out, and the price."""

    release: Annotated[str, Field(min_length=1, max_length=200)] = Field(description="The id of the model's receipt.")
    epsilon: float = Field(description="The price.", examples=[0.1])


class AskScoreIn(ScoreIn):
    """The same, to be done."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class OpenSyntheticIn(_Given):
    """What questions are to call the rows of a synthetic table, and how many there are to be."""

    name: Annotated[str, Field(min_length=1, max_length=63, examples=["visits_synthetic"])]
    rows: int | None = Field(None, ge=0, le=100_000_000, description="As many as the real table has, by noisy count.")


class ObtainIn(_Given):
    """A release of some kind."""

    request: dict[str, Any] = Field(description="What is asked for; each kind says what it takes.")
    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is charged once, however often the request is sent."
    )


class PublishIn(_Given):
    """Which rows, what is asked of them, and how they are made."""

    table: Annotated[str, Field(max_length=63)] = Field("", description="A protected table; empty with a policy.")
    policy: Annotated[str, Field(max_length=200_000)] | None = Field(
        None, description="TOML with [table] name and source, and [anonymity], of files below the server's data_dir."
    )
    k: Annotated[int, Field(ge=1, le=10**9)] | None = None
    l: Annotated[float, Field(ge=1, le=10**9)] | None = None  # noqa: E741
    l_kind: Literal["distinct", "probabilistic", "entropy", "recursive"] | None = None
    c: Annotated[float, Field(gt=0)] | None = None
    t: Annotated[float, Field(ge=0, le=1)] | None = None
    t_distance: Literal["ordered", "equal", "hierarchy"] | None = None
    beta: Annotated[float, Field(gt=0)] | None = None
    presence: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    population: Annotated[str, Field(max_length=1000)] | None = Field(None, description="A file below data_dir.")
    m: Annotated[int, Field(ge=2, le=10**6)] | None = None
    previous: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="A file below data_dir that remembers earlier releases; written anew."
    )
    id: Annotated[str, Field(max_length=200)] | None = Field(None, description="The column that says whose a row is.")
    suppress: Annotated[float, Field(ge=0, le=1)] | None = Field(None, description="A share of the rows; default 0.")
    loss: Literal["ncp", "discernibility", "class-size", "entropy"] | None = None
    time: Annotated[float, Field(gt=0, le=600)] | None = Field(
        None, description="Seconds after which the best so far is taken; by default 60 for optimal, all of a curve."
    )
    method: Literal["optimal", "mondrian", "mondrian-relaxed", "local", "greedy"] | None = None
    form: Literal[".csv", ".parquet"] = ".csv"
    yes: bool = False
    dry_run: bool = False
    reason: Annotated[str, Field(max_length=2000)] = ""
    curve: Annotated[list[Annotated[int, Field(ge=2, le=10**6)]], Field(max_length=20)] | None = Field(
        None, description="With dry_run: the loss for these k as well."
    )
    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class ProtectIn(_Given):
    """Policies as TOML; the files that they name lie below the server's data_dir."""

    policies: Annotated[list[Annotated[str, Field(max_length=200_000)]], Field(min_length=1, max_length=50)]
    yes: bool = False
    dry_run: bool = False
    reason: Annotated[str, Field(max_length=2000)] = ""


class RefreshIn(_Given):
    """What changed behind a table's name."""

    new_people: bool = False
    find_limits: bool = False
    yes: bool = False
    dry_run: bool = False
    reason: Annotated[str, Field(max_length=2000)] = ""


class AllotmentIn(_Given):
    """What an analyst may spend."""

    epsilon: float


class ReasonIn(_Given):
    """Why, for the history."""

    reason: Annotated[str, Field(min_length=1, max_length=2000)]


class TokenIn(_Given):
    """A token to be made."""

    role: Literal["owner", "analyst", "auditor"]
    analyst: Annotated[str, Field(max_length=200)] = ""
    days: Annotated[float, Field(gt=0, le=366)] = 30
    trusted: bool = False
    note: Annotated[str, Field(max_length=200)] = ""


class ProblemOut(BaseModel):
    """RFC 9457, with what it cost and what would pass."""

    type: str = Field(examples=["urn:dalenius:budget.exhausted"])
    title: str
    status: int
    detail: str
    code: str
    message: str
    why: str
    fix: str
    charge: dict[str, float | None]
    fits: dict[str, float | None] | None
    at: dict[str, int] | None


class ReleaseOut(BaseModel):
    """The answer: noisy values with their error, the guarantee, what it cost and what is left."""

    question: str
    columns: list[str]
    keys: list[bool]
    rows: list[list[Any]]
    noise_error: list[list[Any]]
    interval: list[list[Any]]
    total_interval: list[list[Any]]
    clipping: list[float | None]
    confidence: float
    guarantee: dict[str, Any]
    charge: dict[str, float | None]
    remaining: dict[str, Any]
    free: bool
    receipt: dict[str, Any] | None
    notes: list[str]
    limits: list[dict[str, Any]]


class PreviewOut(BaseModel):
    """Price and expected error. Nothing was charged, and no data was read."""

    question: str
    columns: list[str]
    groups: int | None
    delta: float
    choices: list[dict[str, Any]]
    confidence: float
    remaining: dict[str, Any]
    notes: list[str]
    search: float
    rows: int
    public: bool
    plan: str | None = None
    explanation: dict[str, Any] | None = Field(None, description="As an [Explanation](#explanation), beside a plan.")


class ExplanationOut(BaseModel):
    """What a question was understood to mean, in plain words. Nothing was charged, and no data was read."""

    question: str
    columns: list[str]
    parts: list[dict[str, Any]] = Field(
        description="What is asked, each with `unit`, `tables`, `rows`, `groups`, `limits`, `measures`."
    )
    after: list[str] = Field(description="What is computed from the release, which is free.")
    public: list[str]
    price: str
    notes: list[str]


class StoredOut(BaseModel):
    """A release on record."""

    id: str = Field(description="That of its receipt.")
    kind: str
    entry: int
    time: str
    dataset: str
    analyst: str = Field(description="Who paid; empty: the owner, from the data set.")
    charge: dict[str, float | None]
    question: str = Field(description="SHA-256 of what was asked.")


class ReleasesOut(BaseModel):
    """Releases on record."""

    releases: list[StoredOut]
    notes: list[str] = Field(description="Which of their data sets ε no longer bounds, since rows were published.")
    next: int | None = Field(description="Where to read on; null at the end.")


class PublicationOut(BaseModel):
    """A publication on record; it has no guarantee."""

    id: str = Field(description="That of its receipt.")
    entry: int
    time: str
    dataset: str
    table: str
    epoch: int
    release: str = Field(description="SHA-256 of the file.")
    words: str | None = Field(description="What was asked of the rows.")
    facts: dict[str, Any] | None = Field(description="Rows, classes, suppressed, models, loss and more.")
    reason: str | None
    by: str | None


class PublicationsOut(BaseModel):
    """Publications on record."""

    publications: list[PublicationOut]


class JobOut(BaseModel):
    """A release on its way; its state changes at the time that was fixed for it."""

    id: str
    state: Literal["running", "done", "failed"]
    leaves: str | None
    seconds_left: float | None
    steps: list[int] | None = Field(
        description="Of a training: how many steps are done, and in all; told to tokens that the owner trusts alone."
    )
    result: ReleaseOut | dict[str, Any] | None
    problem: ProblemOut | None


class StandingOut(BaseModel):
    """How an analyst, or a data set, stands."""

    analyst: str = Field("", description="The analyst; or")
    dataset: str = Field("", description="the data set.")
    state: Literal["active", "suspended"]
    late: int = Field(description="Late answers that count, since it was last lifted.")
    since: str | None = Field(description="When it was suspended, or lifted.")
    reason: str | None
    by: str | None = Field(description="`cli:USER`, `token:ID`, or `curator`: the rule about late answers.")


class TokenOut(BaseModel):
    """A token, without its secret."""

    id: str
    role: str
    analyst: str
    created: str
    expires: str
    revoked: str
    trusted: bool
    note: str
    state: str


class NewTokenOut(TokenOut):
    """A new token. This is the only time that its text is shown."""

    token: str


class FileListOut(BaseModel):
    """Files of which a table can be made, by their names relative to data_dir; at most a thousand."""

    files: list[str]


class FileOut(BaseModel):
    """A file that came in."""

    name: str


class FileColumnOut(BaseModel):
    """A column of a file: its name, and its type as DuckDB says it; of CSV, as DuckDB guesses it."""

    name: str
    type: str


class FileColumnsOut(BaseModel):
    """What a file's header says; nothing of its rows."""

    name: str
    columns: list[FileColumnOut]


class BudgetLineOut(BaseModel):
    """What one budget had left over time."""

    dataset: str
    period: str | None = Field(description="null: the budget has none, or nothing was charged yet.")
    analyst: str | None = Field(description="null: the whole data set.")
    cap: float = Field(description="The ε of the budget, or of the allotment, as it is now.")
    points: list[tuple[str, float]] = Field(
        description="When (ISO 8601, UTC), and the largest ε that one more question could have typed from then on."
    )


class OverTimeOut(BaseModel):
    """The lines that this token may see."""

    lines: list[BudgetLineOut]
