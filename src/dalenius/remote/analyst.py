"""A curator on another machine: the same questions, the same answers, by way of HTTP.

The standard library is enough for it. An answer that is lost on its way is asked for again under the same idempotency
key, so that no question is charged twice because a network failed.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from dalenius._fields import Fields
from dalenius.accounting import parameters
from dalenius.errors import UNKNOWN, DaleniusError
from dalenius.remote import wire
from dalenius.remote.calls import FIRST_PAUSE, Calls
from dalenius.remote.transport import Transport
from dalenius.remote.wire import RemoteJob, body_of, quote_part

if TYPE_CHECKING:
    from dalenius.learning.preview import ModelPreview
    from dalenius.learning.release import TrainedModel
    from dalenius.learning.score_release import ModelScore, ScorePreview
    from dalenius.ledger.budgets import Balance
    from dalenius.measuring.plan import Limits
    from dalenius.queries.ask import Error
    from dalenius.queries.explaining import Explanation
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.queries.workloads.release import WorkloadPreview, WorkloadRelease
    from dalenius.releasing.kinds import Shown
    from dalenius.releasing.stored import Stored
    from dalenius.synthesis.comparison_release import Comparison, ComparisonPreview
    from dalenius.synthesis.preview import SyntheticPreview
    from dalenius.synthesis.release import SyntheticTable

T = TypeVar("T")
Progress: TypeAlias = Callable[[float, str], object]
"""Told how far a question that takes its time is: the share from 0 to 1, and words."""
Steps: TypeAlias = Callable[[int, int], None]  # told how many steps of a training are done, of how many

TIMEOUT = 60.0  # seconds
_ROUNDS = 3  # how often a question is asked again whose job the server no longer knows
_KEPT = 1000  # keys of questions whose outcome is not known
_LONGEST_SLEEP = 30.0  # seconds between two looks at a job
_LONGEST_TURN = 3600.0  # seconds that a question may wait until it is looked at
_PAGE = 1000


def connect(
    url: str,
    token: str,
    *,
    ca: Path | str | None = None,
    timeout: float = TIMEOUT,
    insecure: bool = False,
    progress: Progress | None = None,
) -> RemoteAnalyst:
    """An analyst who asks a server. Nothing is sent before the first question.

    Args:
        url: Where it is, such as https://curator.example.org.
        token: From the owner; it says who asks. It is sent to this address only, also when that redirects.
        ca: A file with the authorities (PEM) that may vouch for the server; by default those of the system.
        timeout: Seconds that a call waits for the server, all tries together. The time that the server itself
            announces for an answer comes on top.
        insecure: Speak http:// with other machines too. Only where something else protects the way.
        progress: Told how far a question is whose answer takes longer.
    """
    seconds = float(parameters.positive(timeout, "timeout", fix="Give seconds, such as 60."))
    return RemoteAnalyst(Transport(url, token, ca=ca, insecure=insecure), min(seconds, 1e6), progress)


@dataclass(frozen=True)
class Told:
    """A release of a kind that only the server knows: as it came."""

    data: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return dict(self.data)


class RemoteAnalyst:
    """What an analyst may do, on a server: as `Analyst`, and `tables`, `table`, `receipt`. Made by `connect`."""

    def __init__(self, transport: Transport, timeout: float = TIMEOUT, progress: Progress | None = None) -> None:
        self._calls = Calls(transport, timeout)
        self._progress = progress
        self._name: str | None = None
        self._lock = threading.Lock()
        self._unsettled: dict[str, str] = {}  # request → key, of asks whose outcome is not known

    def __repr__(self) -> str:
        return f"RemoteAnalyst({self._calls.transport.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. A later call opens new ones."""
        self._calls.transport.close()

    @property
    def name(self) -> str:
        """Whose token it is; empty for owners and auditors. Asked of the server once."""
        if self._name is None:
            data = self._calls.found("GET", "/v1/me")
            self._name = self._calls.read(data, lambda found: Fields(found, "token").text("analyst"))
        return self._name

    def preview(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        error: Error | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        limits: Limits | None = None,
        fresh: bool = False,
    ) -> Preview:
        """Price and expected error, for nothing: at ``epsilon``, or at three usual prices. As `Analyst.preview`."""
        from dalenius.queries.preview import Preview

        body = body_of(question, epsilon, error, confidence, delta, limits, fresh=fresh) | {"plan": True}
        return self._calls.read(self._calls.found("POST", "/v1/preview", body), Preview.from_dict)

    def explain(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        limits: Limits | None = None,
    ) -> Explanation:
        """What a question was understood to mean, for nothing. As `Analyst.explain`."""
        from dalenius.queries.explaining import Explanation

        body = body_of(question, epsilon, None, 0.95, delta, limits)
        body = {name: value for name, value in body.items() if name not in {"error", "confidence"}}
        return self._calls.read(self._calls.found("POST", "/v1/explain", body), Explanation.from_dict)

    def ask(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        error: Error | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        limits: Limits | None = None,
        fresh: bool = False,
        idempotency_key: str | None = None,
    ) -> Release:
        """Asks, as `Analyst.ask`. A lost answer is asked for again, and is not charged again.

        Where all tries fail, whether the question was charged is not known; the error's charge is then NaN. The same
        question of this object again goes under the same key: it is charged at most once in all.
        """
        from dalenius.queries.release import Release

        body = body_of(question, epsilon, error, confidence, delta, limits, fresh=fresh)
        return self._settled("/v1/ask", body, idempotency_key, lambda found: Release.from_dict(found, question))

    def preview_many(
        self,
        questions: Sequence[str] | str,
        *,
        epsilon: float,
        weights: Sequence[float] = (),
        confidence: float = 0.95,
        delta: float | None = None,
    ) -> WorkloadPreview:
        """What many questions at one price would give, for nothing. As `Analyst.preview_many`."""
        from dalenius.queries.workloads.release import WorkloadPreview

        body = wire.workload_body(questions, epsilon, weights, confidence, delta)
        return self._calls.read(self._calls.found("POST", "/v1/workloads/preview", body), WorkloadPreview.from_dict)

    def ask_many(
        self,
        questions: Sequence[str] | str,
        *,
        epsilon: float,
        weights: Sequence[float] = (),
        confidence: float = 0.95,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> WorkloadRelease:
        """Asks many questions at one price, as `Analyst.ask_many`. A lost answer is not charged again."""
        from dalenius.queries.workloads.release import WorkloadRelease

        body = wire.workload_body(questions, epsilon, weights, confidence, delta)
        return self._settled("/v1/workloads", body, idempotency_key, WorkloadRelease.from_dict)

    def preview_synthetic(
        self,
        table: str,
        *,
        epsilon: float,
        method: str = "auto",
        columns: Sequence[str] = (),
        target: str | None = None,
        rows_per_unit: int | None = None,
        time: float | None = None,
    ) -> SyntheticPreview:
        """What a synthetic table would be, for nothing. As `Analyst.preview_synthetic`."""
        from dalenius.synthesis.preview import SyntheticPreview
        from dalenius.synthesis.request import SynthesisAsk

        ask = SynthesisAsk(table, epsilon, method, tuple(columns), target, rows_per_unit, time)
        found = self._calls.found("POST", "/v1/synthetic/preview", ask.to_json())
        return self._calls.read(found, SyntheticPreview.from_dict)

    def synthesize(
        self,
        table: str,
        *,
        epsilon: float,
        method: str = "auto",
        columns: Sequence[str] = (),
        target: str | None = None,
        rows_per_unit: int | None = None,
        time: float | None = None,
        idempotency_key: str | None = None,
    ) -> SyntheticTable:
        """Makes a synthetic table, as `Analyst.synthesize`. The model comes here, and rows are drawn here."""
        from dalenius.synthesis.release import SyntheticTable
        from dalenius.synthesis.request import SynthesisAsk

        ask = SynthesisAsk(table, epsilon, method, tuple(columns), target, rows_per_unit, time)
        return self._settled("/v1/synthetic", ask.to_json(), idempotency_key, SyntheticTable.from_dict)

    def synthetic(self, release: str) -> SyntheticTable:
        """A synthetic table that was paid for before, as `Analyst.synthetic`."""
        from dalenius.synthesis.release import SyntheticTable

        return self._calls.read(
            self._calls.found("GET", f"/v1/synthetic/{quote_part(release)}"), SyntheticTable.from_dict
        )

    def preview_comparison(
        self, release: SyntheticTable | str, *, epsilon: float, predict: str | None = None
    ) -> ComparisonPreview:
        """What a comparison would be, for nothing. As `Analyst.preview_comparison`."""
        from dalenius.synthesis.comparison_release import ComparisonPreview

        body = wire.comparison_body(release, epsilon, predict)
        return self._calls.read(
            self._calls.found("POST", "/v1/synthetic/compare/preview", body), ComparisonPreview.from_dict
        )

    def compare_synthetic(
        self,
        release: SyntheticTable | str,
        *,
        epsilon: float,
        predict: str | None = None,
        idempotency_key: str | None = None,
    ) -> Comparison:
        """Compares a synthetic table with the real one, as `Analyst.compare_synthetic`."""
        from dalenius.synthesis.comparison_release import Comparison

        body = wire.comparison_body(release, epsilon, predict)
        return self._settled("/v1/synthetic/compare", body, idempotency_key, Comparison.from_dict)

    def comparisons(self, release: SyntheticTable | str) -> list[Comparison]:
        """The comparisons of a synthetic table that were paid for before, newest first. As `Analyst.comparisons`."""
        from dalenius.synthesis.comparison_release import Comparison
        from dalenius.synthesis.release import release_id

        path = f"/v1/synthetic/{quote_part(release_id(release))}/comparisons"
        found = self._calls.found("GET", path)
        return self._calls.read(
            found, lambda data: list(map(Comparison.from_dict, Fields(data, "list").each("comparisons", dict)))
        )

    def preview_model(
        self,
        table: str,
        target: str,
        *,
        epsilon: float,
        model: str = "logistic",
        features: Sequence[str] = (),
        method: str = "auto",
        rows_per_unit: int | None = None,
        held_out: float = 0.0,
        batch: int | None = None,
        steps: int | None = None,
    ) -> ModelPreview:
        """What a model would be, for nothing. As `Analyst.preview_model`."""
        from dalenius.learning.preview import ModelPreview
        from dalenius.learning.request import ModelAsk

        more = (rows_per_unit, held_out, batch, steps)
        ask = ModelAsk(table, target, epsilon, model, tuple(features), method, *more)
        return self._calls.read(self._calls.found("POST", "/v1/models/preview", ask.to_json()), ModelPreview.from_dict)

    def train(
        self,
        table: str,
        target: str,
        *,
        epsilon: float,
        model: str = "logistic",
        features: Sequence[str] = (),
        method: str = "auto",
        rows_per_unit: int | None = None,
        held_out: float = 0.0,
        batch: int | None = None,
        steps: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        idempotency_key: str | None = None,
    ) -> TrainedModel:
        """Trains a model, as `Analyst.train`. It comes here, and predicts here."""
        from dalenius.learning.release import TrainedModel
        from dalenius.learning.request import ModelAsk

        more = (rows_per_unit, held_out, batch, steps)
        ask = ModelAsk(table, target, epsilon, model, tuple(features), method, *more)
        return self._settled("/v1/models", ask.to_json(), idempotency_key, TrainedModel.from_dict, stepped=progress)

    def model(self, release: str) -> TrainedModel:
        """A model that was paid for before, as `Analyst.model`."""
        from dalenius.learning.release import TrainedModel

        return self._calls.read(self._calls.found("GET", f"/v1/models/{quote_part(release)}"), TrainedModel.from_dict)

    def preview_score(self, release: TrainedModel | str, *, epsilon: float) -> ScorePreview:
        """What a score of a model would be, for nothing. As `Analyst.preview_score`."""
        from dalenius.learning.score_release import ScorePreview

        body = wire.score_body(release, epsilon)
        return self._calls.read(self._calls.found("POST", "/v1/models/score/preview", body), ScorePreview.from_dict)

    def score_model(
        self, release: TrainedModel | str, *, epsilon: float, idempotency_key: str | None = None
    ) -> ModelScore:
        """Counts how well a model predicts units held out, as `Analyst.score_model`."""
        from dalenius.learning.score_release import ModelScore

        return self._settled(
            "/v1/models/score", wire.score_body(release, epsilon), idempotency_key, ModelScore.from_dict
        )

    def obtain(self, kind: str, request: Any, *, idempotency_key: str | None = None) -> Shown:
        """A release of any kind, as `Analyst.obtain`. A lost one is asked for again, and is not charged again."""
        wish = request.to_json() if hasattr(request, "to_json") else request
        path = f"/v1/releases/{quote_part(kind)}"
        return self._settled(
            path, {"request": wish}, idempotency_key, lambda found: Told(Fields(found, "release").data)
        )

    def releases(self) -> list[Stored]:
        """What this analyst has paid for and was given, oldest first."""
        from dalenius.releasing.stored import Stored

        return [self._calls.read(each, lambda row: Stored(**row)) for each in self._all_of("releases")]

    def budget(self) -> dict[str, Balance]:
        """What is left of this analyst's allotments, by data set."""
        name, datasets = self.name, self.budgets()
        found = {
            dataset: self._calls.read(data, lambda each: _own_balance(each, name)) for dataset, data in datasets.items()
        }
        return {dataset: balance for dataset, balance in found.items() if balance is not None}

    def history(self) -> list[dict[str, Any]]:
        """Every charge of this analyst, oldest first."""
        return list(self._all_of("history"))

    # --- what a server tells besides

    def tables(self) -> list[dict[str, Any]]:
        """What may be asked about; of each table what `dalenius tables --json` has."""
        return self._calls.read(self._calls.found("GET", "/v1/tables"), wire.summaries)

    def table(self, name: str) -> dict[str, Any]:
        """The same of one table."""
        return self._calls.read(self._calls.found("GET", f"/v1/tables/{quote_part(name)}"), wire.only_summary)

    def receipt(self, id: str) -> dict[str, Any]:  # noqa: A002 (what the receipt itself calls it)
        """A receipt, by its id."""
        data = self._calls.found("GET", f"/v1/receipts/{quote_part(id)}")
        return self._calls.read(data, lambda found: dict(Fields(found, "receipt").data))

    def budgets(self) -> dict[str, Any]:
        """Every balance that the token may see, as `dalenius budget --json` has them."""
        data = self._calls.found("GET", "/v1/budget")
        return self._calls.read(data, lambda found: Fields(found, "list").mapping("datasets"))

    def _all_of(self, name: str) -> Iterator[dict[str, Any]]:
        """Every row of a list that comes page by page."""
        after: int | None = 0
        while after is not None:
            since: int = after
            data = self._calls.found("GET", f"/v1/{name}?after={since}&limit={_PAGE}")
            rows, after = self._calls.read(data, lambda page: _page(page, since, name))  # noqa: B023 (called at once)
            yield from rows

    # --- the way of a request

    def _settled(
        self,
        path: str,
        body: Mapping[str, Any],
        given: str | None,
        read: Callable[[Any], T],
        *,
        stepped: Steps | None = None,
    ) -> T:
        """Asks under a key, and keeps that key as long as it is not known what became of it."""
        text = json.dumps([path, body], sort_keys=True)
        key = given
        if key is None:  # else the caller sees to it, and what is kept stays kept
            with self._lock:
                key = self._unsettled.pop(text, None) or secrets.token_urlsafe(24)
        try:
            return self._calls.read(self._answer(path, {**body, "idempotency_key": key}, stepped), read, charge=UNKNOWN)
        except DaleniusError as failed:
            if given is None and math.isnan(failed.charge.epsilon):
                self._keep(text, key)
            raise
        except BaseException:  # interrupted
            if given is None:
                self._keep(text, key)
            raise

    def _answer(self, path: str, body: Mapping[str, Any], stepped: Steps | None) -> Any:
        """A release, at once or from its job."""
        for _ in range(_ROUNDS):
            reply = self._calls.reply("POST", path, body, asking=True)
            if reply.status != 202:
                return reply.data
            try:
                job = self._finished(self._calls.read(reply.data, RemoteJob.from_dict), stepped)
            except DaleniusError as error:
                error.charge = UNKNOWN  # it was begun, and is still on its way
                raise
            if job is not None:
                if job.state == "done":
                    return job.result
                told = wire.problem(job.problem, 503)
                raise told or self._calls.strange("Its job failed without saying why.", UNKNOWN)
            # The server knows it no more: asked again under the same key, it is not charged again.
        raise self._calls.strange("It forgets the jobs that it has begun.", UNKNOWN)

    def _finished(self, job: RemoteJob, stepped: Steps | None = None) -> RemoteJob | None:
        """The job when it has ended; None: the server no longer knows it."""
        began, pause = time.monotonic(), FIRST_PAUSE
        late, fixed = began + job.seconds_left + self._calls.timeout, job.seconds_left > 0
        while job.state == "running":
            if job.seconds_left > 0 and not fixed:  # it has waited for its turn, and its time is known only now
                late, fixed = time.monotonic() + job.seconds_left + self._calls.timeout, True
            if time.monotonic() > (late if fixed else began + _LONGEST_TURN):
                raise self._calls.strange("Its answer did not leave when it should have.", UNKNOWN)
            self._tell(began, job.seconds_left)
            if job.seconds_left > 0:
                self._wait(began, job.seconds_left)
            else:
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
            reply = self._calls.reply("GET", f"/v1/jobs/{quote_part(job.id)}", asking=True, missing=True)
            if reply.status == 404:
                return None
            job = self._calls.read(reply.data, RemoteJob.from_dict)
            if stepped is not None and job.steps is not None:
                stepped(*job.steps)
        if self._progress is not None:
            self._progress(1.0, "answered")
        return job

    def _wait(self, began: float, seconds: float) -> None:
        """Sleeps until the answer leaves, or for some time, telling how far it is."""
        now = time.monotonic()
        leaves, end = now + seconds, now + min(seconds, _LONGEST_SLEEP)
        while (left := end - time.monotonic()) > 0:
            time.sleep(left if self._progress is None else min(left, 0.5))
            self._tell(began, max(0.0, leaves - time.monotonic()))

    def _tell(self, began: float, left: float) -> None:
        if self._progress is not None:
            gone = time.monotonic() - began
            self._progress(gone / (gone + left) if gone + left > 0 else 1.0, f"the answer leaves in {left:.0f} s")

    def _keep(self, text: str, key: str) -> None:
        """Remembers the key of a question whose outcome is not known, for when it is asked again."""
        with self._lock:
            self._unsettled[text] = key
            if len(self._unsettled) > _KEPT:
                del self._unsettled[next(iter(self._unsettled))]


def _own_balance(data: Any, name: str) -> Balance | None:
    """One analyst's balance in a data set; of a budget by periods that of a period which nobody has charged yet."""
    from dalenius.ledger.budgets import Balance

    place = Fields(data, "balance")
    if "periods" not in place:
        own = place.mapping("analysts").get(name)
        return None if own is None else Balance.from_dict(own)
    analysts = {
        period: Fields(each, "balance").mapping("analysts") for period, each in place.mapping("periods").items()
    }
    balances = {period: Balance.from_dict(each[name]) for period, each in analysts.items() if name in each}
    if "" in balances:
        return balances[""]
    return next(iter(balances.values())).untouched() if balances else None


def _page(data: Any, after: int, name: str) -> tuple[list[dict[str, Any]], int | None]:
    """Rows of a list, such as the history, and where to read on."""
    page = Fields(data, name)
    following = page.whole("next") if "next" in page else None
    if following is not None and following <= after:  # it would never end
        raise page.wrong("next")
    return page.each(name, dict), following
