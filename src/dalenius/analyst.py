"""What an analyst may do, near or far: preview, ask, what is left, what was asked."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from dalenius.errors import NOTHING, Charge, DaleniusError, InputError
from dalenius.ledger.requests import QUESTION
from dalenius.releasing.kinds import Shown, kind_of
from dalenius.releasing.leaving import Asker, Leaving, release
from dalenius.releasing.stored import Stored, kind_named, releases_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dalenius.learning.preview import ModelPreview
    from dalenius.learning.release import TrainedModel
    from dalenius.learning.score_release import ModelScore, ScorePreview
    from dalenius.ledger.budgets import Balance
    from dalenius.ledger.ledger import Ledger
    from dalenius.measuring.engines.sources import Engines
    from dalenius.measuring.plan import Limits
    from dalenius.queries.ask import Error
    from dalenius.queries.explaining import Explanation
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.queries.workloads.release import WorkloadPreview, WorkloadRelease
    from dalenius.releasing.pacing import Pacer
    from dalenius.synthesis.comparison_release import Comparison, ComparisonPreview
    from dalenius.synthesis.preview import SyntheticPreview
    from dalenius.synthesis.release import SyntheticTable
    from dalenius.tables.registry import Registry

_LONGEST_KEY = 200


class Asking(Protocol):
    """Whoever asks questions: write programs against this, and they run on a home of their own or against a server."""

    @property
    def name(self) -> str:
        """Whose allotment pays."""
        ...

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
        """Price and expected error, for nothing."""
        ...

    def explain(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        limits: Limits | None = None,
    ) -> Explanation:
        """What a question was understood to mean, for nothing."""
        ...

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
        """Asks; charged before the data is looked at."""
        ...

    def preview_many(
        self,
        questions: Sequence[str] | str,
        *,
        epsilon: float,
        weights: Sequence[float] = (),
        confidence: float = 0.95,
        delta: float | None = None,
    ) -> WorkloadPreview:
        """What many questions at one price would give, for nothing."""
        ...

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
        """Asks many questions at one price; charged once, before the data is looked at."""
        ...

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
        """What a synthetic table would be, for nothing."""
        ...

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
        """A model of a table's rows, from which as many as wanted are drawn; charged before the data is looked at."""
        ...

    def synthetic(self, release: str) -> SyntheticTable:
        """A synthetic table that was paid for before, for nothing."""
        ...

    def preview_comparison(
        self, release: SyntheticTable | str, *, epsilon: float, predict: str | None = None
    ) -> ComparisonPreview:
        """What a comparison of a synthetic table with the real one would be, for nothing."""
        ...

    def compare_synthetic(
        self,
        release: SyntheticTable | str,
        *,
        epsilon: float,
        predict: str | None = None,
        idempotency_key: str | None = None,
    ) -> Comparison:
        """How far a synthetic table is from the real one; charged before the data is looked at."""
        ...

    def comparisons(self, release: SyntheticTable | str) -> list[Comparison]:
        """What was paid for of comparisons of a synthetic table, newest first, for nothing."""
        ...

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
        """What a model would be, for nothing."""
        ...

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
        """Trains a model on a table; charged before the data is looked at."""
        ...

    def model(self, release: str) -> TrainedModel:
        """A model that was paid for before, for nothing."""
        ...

    def preview_score(self, release: TrainedModel | str, *, epsilon: float) -> ScorePreview:
        """What a score of a model on units held out would be, for nothing."""
        ...

    def score_model(
        self, release: TrainedModel | str, *, epsilon: float, idempotency_key: str | None = None
    ) -> ModelScore:
        """How well a model predicts units held out; charged before the data is looked at."""
        ...

    def obtain(self, kind: str, request: Any, *, idempotency_key: str | None = None) -> Shown:
        """A release of any kind."""
        ...

    def releases(self) -> list[Stored]:
        """What this analyst has paid for and was given, oldest first."""
        ...

    def budget(self) -> dict[str, Balance]:
        """What is left of this analyst's allotments, by data set."""
        ...

    def history(self) -> list[dict[str, Any]]:
        """Every charge of this analyst, oldest first."""
        ...


class Analyst:
    """What one analyst may do on a home of this machine; `RemoteAnalyst` is the other one. Made by `Curator.analyst`.

    The way of a question: it is planned and priced without the data; the ledger charges it; only then does the engine
    look; the release is on disk before it is returned (`releasing.leaving`).

    Args:
        name: Whose allotment pays.
        ledger: Where it is charged.
        registry: The tables.
        engines: Where they are read.
        pacer: When answers leave (`releasing.pacing`); None: as soon as they are ready.
    """

    def __init__(
        self, name: str, ledger: Ledger, registry: Registry, engines: Engines, pacer: Pacer | None = None
    ) -> None:
        self.name = name
        self._asker = Asker(name, ledger, registry, engines, pacer)

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
        """Price and expected error, for nothing: at ``epsilon``, or at three usual prices. Never touches the data."""
        from dalenius.queries.ask import Ask
        from dalenius.queries.kind import preview

        return preview(self._asker, Ask(question, epsilon, error, confidence, delta, limits, fresh))

    def explain(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        limits: Limits | None = None,
    ) -> Explanation:
        """What a question was understood to mean, in plain words, for nothing. Never touches the data.

        Args:
            question: SQL, as for `ask`.
            epsilon: The price, if it is to be told what that is.
            delta: For finding keys, as for `ask`.
            limits: Tighter limits, as for `ask`.
        """
        from dalenius.queries.ask import Ask
        from dalenius.queries.kind import explain

        return explain(self._asker, Ask(question, epsilon, delta=delta, limits=limits))

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
        """Asks. The whole question, taken alone, is (ε, δ)-DP; the same question again is free.

        So is one that follows from answers of this analyst, as exact as ε would buy it: groups added up, what is left
        of a total, parts of a workload. Other own answers about the same rows make what is paid for more exact.

        A question over public tables only needs no price: its answer is exact, and charges nothing.

        Args:
            question: SQL, one SELECT over a protected table, or over public ones.
            epsilon: The price, where the question's own OPTIONS(epsilon = …) do not say it; or
            error: the error that is good enough, for all columns or by name: a number, or a per cent of what each
                group shows ("2%", for groups of at least half the average size). The least ε that is expected to give
                it is paid; with what limits cut off, where that is known. ``epsilon`` beside it is the most that is
                paid; without one, a price above a quarter of what is left is refused, for nothing.
            confidence: Of the errors.
            delta: For finding keys that are not public; by default as much as fits what is left and the
                price (`Preview.delta`). Not used otherwise.
            limits: Tighter limits of what one unit adds, for this question; or which share of the price goes into
                finding some (`Limits.search`), by default a tenth where limits of the whole table are likely too wide.
            fresh: Pay for it though it is known already, and do not mix it with other answers.
            idempotency_key: For who may have to ask again without knowing what became of the first time: the same key
                is charged once, also if the question failed or the data changed meanwhile.
        """
        from dalenius.queries.ask import Ask

        ask = Ask(question, epsilon, error, confidence, delta, limits, fresh)
        return cast("Release", self.obtain(QUESTION, ask, idempotency_key=idempotency_key))

    def preview_many(
        self,
        questions: Sequence[str] | str,
        *,
        epsilon: float,
        weights: Sequence[float] = (),
        confidence: float = 0.95,
        delta: float | None = None,
    ) -> WorkloadPreview:
        """The error that each of many questions may be expected to have at one price, for nothing. Sees no data."""
        from dalenius.queries.workloads.kind import preview
        from dalenius.queries.workloads.request import WorkloadAsk

        return preview(self._asker, WorkloadAsk.of(_workload(questions, epsilon, weights, confidence, delta)))

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
        """Asks many questions about one data set at once. All of them, taken together, are (ε, δ)-DP.

        They are answered from what is measured once for all of them, so that answers fit one another. There is one
        charge; the same questions again are free, and so is each of them alone.

        Args:
            questions: SQL, one SELECT each; or one text with `;` between them.
            epsilon: The price of all of them together.
            weights: How much an error in each counts; by default all count the same.
            confidence: Of the errors.
            delta: For finding keys that are not public, as for `ask`.
            idempotency_key: As for `ask`.
        """
        from dalenius.queries.workloads.request import WorkloadAsk

        ask = WorkloadAsk.of(_workload(questions, epsilon, weights, confidence, delta))
        return cast("WorkloadRelease", self.obtain("workload", ask, idempotency_key=idempotency_key))

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
        """Price, columns and expected noise of a synthetic table, for nothing. Never touches the data."""
        from dalenius.synthesis.preview import preview
        from dalenius.synthesis.request import SynthesisAsk

        return preview(self._asker, SynthesisAsk(table, epsilon, method, tuple(columns), target, rows_per_unit, time))

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
        """Makes a synthetic table: a model of the rows, which taken alone is (ε, δ)-DP, and so are all rows from it.

        It is charged once. The same request again is free and gives the same model; so are more rows from it.

        Args:
            table: Whose rows.
            epsilon: The price of all of it.
            method: The generator; "auto": the best there is.
            columns: Those to model; none: all whose values the policy declares (`SyntheticTable.left_out`).
            target: A column that will be predicted: what tells about it is measured more exactly.
            rows_per_unit: So many rows of one unit count in full, and more of them less each; the table's limit, if
                nobody says. Fewer mean less noise.
            time: Seconds that the work may take, as reckoned from public sizes for the machine of bench/RESULTS.md:
                the best that fits is made, and the same request is always the same work.
            idempotency_key: As for `ask`.
        """
        from dalenius.synthesis.request import SynthesisAsk

        ask = SynthesisAsk(table, epsilon, method, tuple(columns), target, rows_per_unit, time)
        return cast("SyntheticTable", self.obtain("synthetic", ask, idempotency_key=idempotency_key))

    def synthetic(self, release: str) -> SyntheticTable:
        """A synthetic table that was paid for before, by the number of its release. Nothing is ever charged for that.

        Args:
            release: The id of its receipt, as `releases` and `preview_synthetic` tell it.
        """
        from dalenius.synthesis.kind import again

        return again(self._asker, release)

    def preview_comparison(
        self, release: SyntheticTable | str, *, epsilon: float, predict: str | None = None
    ) -> ComparisonPreview:
        """Price and expected margins of a comparison, for nothing. Never touches the data."""
        from dalenius.synthesis.comparison_kind import ComparisonAsk, preview
        from dalenius.synthesis.release import release_id

        return preview(self._asker, ComparisonAsk(release_id(release), epsilon, predict))

    def compare_synthetic(
        self,
        release: SyntheticTable | str,
        *,
        epsilon: float,
        predict: str | None = None,
        idempotency_key: str | None = None,
    ) -> Comparison:
        """Compares a synthetic table with the real one: errors of tables of 1, 2 and 3 columns, as noisy counts.

        It is charged once, besides what the table cost, and is taken alone (ε, δ)-DP. The same again is free.

        Args:
            release: The synthetic table, or the id of its receipt.
            epsilon: The price.
            predict: A column that a classifier, learned from synthetic rows, is to predict in real ones.
            idempotency_key: As for `ask`.
        """
        from dalenius.synthesis.comparison_kind import COMPARISON, ComparisonAsk
        from dalenius.synthesis.release import release_id

        ask = ComparisonAsk(release_id(release), epsilon, predict)
        return cast("Comparison", self.obtain(COMPARISON, ask, idempotency_key=idempotency_key))

    def comparisons(self, release: SyntheticTable | str) -> list[Comparison]:
        """The comparisons of a synthetic table that were paid for before, newest first. Nothing is charged for that.

        Args:
            release: The synthetic table, or the id of its receipt.
        """
        from dalenius.synthesis.comparison_kind import comparisons
        from dalenius.synthesis.release import release_id

        return comparisons(self._asker, release_id(release))

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
        """Price, steps, noise and expected loss of accuracy of a model, for nothing. Never touches the data."""
        from dalenius.learning.preview import preview
        from dalenius.learning.request import ModelAsk

        more = (rows_per_unit, held_out, batch, steps)
        return preview(self._asker, ModelAsk(table, target, epsilon, model, tuple(features), method, *more))

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
        """Trains a model that predicts a column from others. Taken alone it is (ε, δ)-DP, and so is all done with it.

        It is charged once, before the first row is read. The same request again is free and gives the same weights. A
        training that broke off goes on where it was when the same is asked again, under the same charge.

        Args:
            table: Whose rows.
            target: The column to predict: with declared keys, or for regressions a number between bounds.
            epsilon: The price of all of it.
            model: "logistic" (two classes or more), "svm", "linear" or "poisson".
            features: The columns to predict from; none: all whose values the policy declares.
            method: "sgd" (noisy gradient steps), "output" (noise added once), or "auto".
            rows_per_unit: So many rows of one unit are learned from; the table's limit, if nobody says.
            held_out: The share of units, chosen by a keyed hash, that are not learned from (`score_model`).
            batch: How many units a step has on average; by rule, if nobody says.
            steps: How many steps there are; by rule, if nobody says.
            progress: Told how many steps are done, of how many; not where answers leave at fixed times.
            idempotency_key: As for `ask`.
        """
        from dalenius.learning.request import ModelAsk

        more = (rows_per_unit, held_out, batch, steps)
        ask = ModelAsk(table, target, epsilon, model, tuple(features), method, *more)
        asker = self._asker if progress is None else replace(self._asker, told=progress)
        return cast("TrainedModel", self._obtain(asker, "model", ask, idempotency_key))

    def model(self, release: str) -> TrainedModel:
        """A model that was paid for before, by the number of its release. Nothing is ever charged for that.

        Args:
            release: The id of its receipt, as `releases` and `preview_model` tell it.
        """
        from dalenius.learning.kind import again

        return again(self._asker, release)

    def preview_score(self, release: TrainedModel | str, *, epsilon: float) -> ScorePreview:
        """Price and expected margin of a score, for nothing. Never touches the data."""
        from dalenius.learning.release import release_id
        from dalenius.learning.score_kind import ScoreAsk, preview

        return preview(self._asker, ScoreAsk(release_id(release), epsilon))

    def score_model(
        self, release: TrainedModel | str, *, epsilon: float, idempotency_key: str | None = None
    ) -> ModelScore:
        """Counts how well a model predicts the units that were held out from it, with noise.

        It is charged once, besides what the model cost, and is taken alone (ε, δ)-DP. The same again is free.

        Args:
            release: The model, trained with ``held_out``, or the id of its receipt.
            epsilon: The price.
            idempotency_key: As for `ask`.
        """
        from dalenius.learning.release import release_id
        from dalenius.learning.score_kind import SCORE, ScoreAsk

        ask = ScoreAsk(release_id(release), epsilon)
        return cast("ModelScore", self.obtain(SCORE, ask, idempotency_key=idempotency_key))

    def obtain(self, kind: str, request: Any, *, idempotency_key: str | None = None) -> Shown:
        """A release of any kind: charged once, the same again is free.

        Args:
            kind: Its name, such as "question".
            request: What is asked for, as JSON has it; each kind says what it takes.
            idempotency_key: As for `ask`.
        """
        return self._obtain(self._asker, kind, request, idempotency_key)

    def _obtain(self, asker: Asker, kind: str, request: Any, idempotency_key: str | None) -> Shown:
        known = kind_of(kind)
        retry = None if idempotency_key is None else self._retry(idempotency_key, known.body(request))
        leaving = known.prepare(asker if retry is None else replace(asker, again=retry[0]), request)
        if not isinstance(leaving, Leaving):
            return leaving
        answered = release(leaving, asker, retry=retry)
        try:
            return known.show(self._asker, request, leaving, answered)
        except DaleniusError as error:  # such as an allotment that ended meanwhile
            if not answered.free and error.charge == NOTHING:
                error.charge = Charge(answered.receipt.charge["epsilon"], answered.receipt.charge["delta"])
            raise

    def releases(self) -> list[Stored]:
        """What this analyst has paid for and was given, oldest first."""
        return [each for each in releases_of(self._asker.ledger) if each.analyst == self.name]

    def budget(self) -> dict[str, Balance]:
        """What is left of this analyst's allotments, by data set."""
        ledger = self._asker.ledger
        return {
            dataset: ledger.balance(dataset, self.name)
            for dataset in ledger.datasets()
            if self.name in ledger.allotments(dataset)
        }

    def history(self) -> list[dict[str, Any]]:
        """Every charge of this analyst, oldest first."""
        found, ledger = [], self._asker.ledger
        for entry in ledger.records(("charge", "grant")):
            data = entry.data
            if data["analyst"] == self.name:
                paid = data if entry.kind == "charge" else ledger.entry(data["charge"]).data
                found.append(
                    {
                        "entry": entry.number,
                        "time": entry.time,
                        "dataset": paid["dataset"],
                        "kind": kind_named(paid),
                        "charge": {key: paid[key] for key in ("epsilon", "delta", "rho")},
                        "question": data["question"],
                    }
                )
        return found

    def _retry(self, key: str, body: str) -> tuple[str, str]:
        """What the ledger knows a retry by: hashes of who asks with which key, and of all that was asked."""
        if not 0 < len(key) <= _LONGEST_KEY or not key.isprintable():
            raise InputError(
                "This is no idempotency key.",
                why=f"It is a text of 1 to {_LONGEST_KEY} printable characters.",
                fix="Use a random one for each question, and the same when you ask again.",
            )
        return tuple(  # type: ignore[return-value]
            hashlib.sha256(each.encode("utf-8", "surrogatepass")).hexdigest() for each in (f"{self.name}\0{key}", body)
        )


def _workload(
    questions: Sequence[str] | str, epsilon: float, weights: Sequence[float], confidence: float, delta: float | None
) -> dict[str, Any]:
    given = {"questions": questions, "epsilon": epsilon, "confidence": confidence, "delta": delta}
    return {**given, "weights": list(weights)}


def resuming(analyst: Analyst, *, public: bool) -> Analyst:
    """The same analyst, who only takes up what was paid for before; for a server that was started again.

    Asked again under its idempotency key, a question gives the stored answer, or is finished if its process died; one
    that was never charged is refused, and costs nothing.

    Args:
        analyst: Whose question it is.
        public: Whether questions over public tables only, which are never charged, are answered.
    """
    asker = replace(analyst._asker, resumes=True, free=public)  # noqa: SLF001 (beside the class)
    found = Analyst(asker.name, asker.ledger, asker.registry, asker.engines, asker.pacer)
    found._asker = asker  # noqa: SLF001
    return found


def telling(analyst: Analyst, told: Callable[[int, int], None]) -> Analyst:
    """The same analyst, with somebody who is told how many steps of a long look are done, of how many.

    Where answers leave at fixed times nobody is told (`releasing.leaving`).
    """
    asker = replace(analyst._asker, told=told)  # noqa: SLF001 (beside the class)
    found = Analyst(asker.name, asker.ledger, asker.registry, asker.engines, asker.pacer)
    found._asker = asker  # noqa: SLF001
    return found
