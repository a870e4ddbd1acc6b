"""The pass after `bound`: no row can make the question heavy. Its work per row, a public bound, is limited as a whole.

Whether an answer is late shows. If one row could take as long as a million others, lateness would tell whether that
row is there (ATTACKS, H23). `work` says what is counted; here the sum over the question is compared with its limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring import work as weights
from dalenius.measuring.plan import require

if TYPE_CHECKING:
    from dalenius.queries.rules import Stage


def limit_work(stage: Stage) -> Stage:
    """Refuses a question whose expressions could take too long in one row. The one place that a planted bug skips."""
    plan = require(stage.plan)
    relation = plan.table.relation
    times = weights.times(relation)
    inside, own, most = weights.inner_work(relation), weights.work_of(plan), weights.MOST_MEETING
    check_work(weights.matching_work(relation), weights.MOST_MATCHED, "Conditions within EXISTS and IN")
    check_work(
        weights.inner_work(relation, 1), weights.MOST, "Conditions about several tables, and subqueries per unit,"
    )
    check_work(weights.sifting_work(relation), weights.MOST, "Conditions of joined tables")
    check_work(own, weights.MOST, "The question's conditions, keys and values")
    if times > 1:
        what = f"Conditions, keys and values of the {times:,} rows that a join makes of one"
        check_work(inside + own * times, most, what)
        # Every row pays for what one does to its batch, too: more than this DuckDB would not even parse.
        check_work(weights.Work((inside + own * times).whole), 10 * most, what)
    if relation.single:
        return stage
    table = replace(plan.table, work=(inside + own * times).whole + times * weights.MEETING)
    return stage.with_(plan=replace(plan, question=replace(plan.question, table=table)))


def check_work(found: weights.Work, most: float, what: str) -> None:
    """Refuses what is beyond a limit; both numbers follow from the question and the policy alone."""
    if found.worst > most:
        raise QuestionRefusedError(
            f"{what} are too much work.",
            why=f"Of one row they could take {found.worst / 1000:,.0f} µs, and at most {most / 1000:,.0f} are allowed: "
            "how long an answer takes must not tell what one row holds.",
            fix="Use fewer of LIKE, LOWER, TRIM, REPLACE and casts, or cut texts first: LEFT(x, 19). A column of a "
            "subquery counts each time it is used. Columns whose keys the policy lists cost little.",
        )
