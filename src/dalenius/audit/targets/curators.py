"""Our curator as a target: through what any analyst has, in this process or over HTTP, and nothing else.

The answer's error is read off the release, where the noise error says it; the shape of the noise is in the code, and
the attacker knows the code.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dalenius.audit.targets.questions import Question
from dalenius.audit.targets.scene import Scene
from dalenius.audit.targets.target import Answer, Noise, Target, TargetRefusal
from dalenius.errors import AuthError, BudgetError, DaleniusError, EngineError, LedgerError, SourceError
from dalenius.ledger.budgets import Accounting

if TYPE_CHECKING:
    from dalenius.analyst import Asking
    from dalenius.curator import Curator
    from dalenius.ledger.budgets import Balance

EVE, MALLORY = "eve", "mallory"
TABLE = "people"
_POLICY = """
[table]
name = "{name}"
source = "{name}.parquet"
unit = "id"
[budget]
epsilon = {epsilon}
{delta}accounting = "{accounting}"
[analysts.eve]
epsilon = {epsilon}
[analysts.mallory]
epsilon = {epsilon}
[columns.person]
type = "integer"
bounds = [0, {last}]
[columns.secret]
type = "boolean"
[columns.amount]
type = "integer"
bounds = [0, {most}]
[columns.word]
type = "text"
[contribution]
rows = 1
groups = 1
{more}"""


def protect(
    scene: Scene,
    folder: Path,
    *,
    epsilon: float,
    delta: float = 1e-6,
    accounting: str = "zcdp",
    name: str = TABLE,
    more: str = "",
) -> Curator:
    """A curator in the folder, over the people of a scene; eve and mallory may ask, for ε together and alone.

    ``more`` goes to the end of the policy.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dalenius.curator import Curator

    places = np.arange(scene.size)
    columns = {"id": places + 1_000_000, "person": places, "secret": scene.secret, "amount": scene.amount}
    table = pa.table({**columns, "word": scene.words})
    pq.write_table(table, folder / f"{name}.parquet")
    policy = _POLICY.format(
        name=name,
        more=more,
        epsilon=epsilon,
        delta=f"delta = {delta}\n" if accounting == "zcdp" else "",
        accounting=accounting,
        last=scene.size - 1,
        most=scene.most,
    )
    (folder / f"{name}.toml").write_text(policy, encoding="utf-8")
    curator = Curator(folder / "home")
    curator.protect(folder / f"{name}.toml")
    return curator


class Curated(Target):
    """An analyst's view of a curator.

    Args:
        scene: The people, of whom only their number is used here.
        analyst: Who asks.
        epsilon: The price of one question.
        table: What the table is called there, or a subquery over it.
        dataset: Whose budget pays; None: the only one.
    """

    name = "dalenius"
    about = "our curator, through an analyst's own interface"

    def __init__(
        self, scene: Scene, analyst: Asking, *, epsilon: float, table: str = TABLE, dataset: str | None = None
    ) -> None:
        super().__init__(scene)
        self._dataset = dataset
        self.analyst = analyst
        self._epsilon = epsilon
        self._table = table
        self.price = 0.0
        self._pure = False  # whether noise is Laplace's; told by the balance

    def answer(self, question: Question) -> Answer:
        """What the curator releases."""
        try:
            release = self.analyst.ask(question.sql(self._table), epsilon=self._epsilon)
        except BudgetError as error:
            raise TargetRefusal(error.message, final=True) from None
        except (SourceError, EngineError, LedgerError, AuthError):
            raise  # something is down, or nobody was let in: that is no defence
        except DaleniusError as error:
            raise TargetRefusal(error.message) from None
        self._settle()
        value, width = release.rows[0][0], release.noise_error[0][0]
        if value is None or width is None:
            raise TargetRefusal("The noise leaves nothing to say.")
        if self._pure:
            return Answer(float(value), Noise.LAPLACE, float(width) / -math.log1p(-release.confidence))
        reach = NormalDist().inv_cdf(0.5 + release.confidence / 2)
        return Answer(float(value), Noise.GAUSSIAN, float(width) / reach)

    def count_words(self) -> dict[str, float]:
        """The words that the curator finds in the rows, for ε and δ."""
        self.asked += 1
        question = f"SELECT word, COUNT(*) AS answer FROM {self._table} GROUP BY word"  # noqa: S608 (as an analyst types it)
        try:
            release = self.analyst.ask(question, epsilon=self._epsilon)
        except BudgetError as error:
            raise TargetRefusal(error.message, final=True) from None
        except (SourceError, EngineError, LedgerError, AuthError):
            raise
        except DaleniusError as error:
            raise TargetRefusal(error.message) from None
        self._settle()
        return {str(word): float(count) for word, count in release.rows}

    def _settle(self) -> None:
        """What all answers together have cost: less than the sum of their prices."""
        balances = self.balances()
        self.price = max((each.spent_guarantee.epsilon for each in balances), default=0.0)
        self._pure = any(each.budget.accounting is Accounting.PURE for each in balances)

    def balances(self) -> list[Balance]:
        """Of the data set that pays."""
        return [each for name, each in self.analyst.budget().items() if self._dataset in {None, name}]


class InProcess(Curated):
    """A curator of its own, in a folder that is gone afterwards."""

    def __init__(self, scene: Scene, *, total: float = 1.0, epsilon: float = 0.1, delta: float = 1e-6) -> None:
        self._folder = TemporaryDirectory(prefix="dalenius-lab-")
        self.curator = protect(scene, Path(self._folder.name), epsilon=total, delta=delta)
        super().__init__(scene, self.curator.analyst(EVE), epsilon=epsilon)

    def other(self) -> Curated:
        """Mallory, who may spend as much as eve."""
        return Curated(self.scene, self.curator.analyst(MALLORY), epsilon=self._epsilon)

    def close(self) -> None:
        """Removes the folder."""
        self.curator.ledger.database.close()
        self._folder.cleanup()
