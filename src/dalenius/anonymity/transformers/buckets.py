"""Buckets of m-invariant republication: people of one signature together, as many of each of its values.

A signature is the set of sensitive values that somebody's class shows; it stays the same in all releases. A bucket is
balanced when each value of its signature is had by as many rows: then it can be cut into classes that show each value
once. Three steps of Xiao and Tao 2007, section 5; the fourth, the cut, is in `republish`:

division    who was published before goes to the bucket of the own signature
balancing   values that a bucket lacks are filled with new people, as long as the other new people can still be
            published among themselves (no value above 1/m of them)
assignment  the other new people form buckets of at least m values

*Past the paper.* It asks that the new people of every release be eligible by themselves. Here only the table must be:
who is above 1/m of the new people gets a signature of their own value and m − 1 others that are *drawn*, and
counterfeits fill what is missing. So a single birth can be published. Drawn, not chosen: were it the cheapest bucket
that has the value, then whoever knows the rule would know which values go there, and that may be one. All sets of m
values that hold the own one are equally likely, so a signature is as likely for each of its values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import SystemRandom

Text = str | None
Signature = tuple[Text, ...]  # in the order of `in_order`


def in_order(value: Text) -> tuple[bool, str]:
    """The order of values; a missing one is a value, and the last."""
    return value is None, value or ""


@dataclass(slots=True)
class Bucket:
    """Rows of one signature, by their sensitive value."""

    signature: Signature
    rows: dict[Text, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for value in self.signature:
            self.rows.setdefault(value, [])

    @property
    def height(self) -> int:
        """Rows of its most frequent value: so many classes it will have."""
        return max(map(len, self.rows.values()))

    def lacks(self, value: Text) -> int:
        """How many rows of a value would have to come for it to be balanced."""
        return self.height - len(self.rows[value])


class Buckets:
    """All buckets of a release, by signature."""

    def __init__(self) -> None:
        self.by_signature: dict[Signature, Bucket] = {}

    def of(self, signature: Signature) -> Bucket:
        """The bucket of a signature."""
        return self.by_signature.setdefault(signature, Bucket(signature))

    def __iter__(self) -> Iterator[Bucket]:
        return iter(self.by_signature.values())


def eligible(counts: Mapping[Text, int], m: int) -> bool:
    """Whether no value is had by more than 1/m of the rows.

    >>> eligible({"flu": 2, "cold": 2}, 2), eligible({"flu": 2, "cold": 1}, 2), eligible({}, 2)
    (True, False, True)
    """
    return m * max(counts.values(), default=0) <= sum(counts.values())


def filled(
    old: Sequence[tuple[int, Text, Signature]], new: Mapping[Text, Sequence[int]], m: int, known: Collection[Text]
) -> Buckets:
    """Balanced up to counterfeits: every row, old or new, in the bucket that it is published from.

    Args:
        old: Rows of people who were published before, with value and signature.
        new: The other rows, by value.
        m: So many values a signature has at least.
        known: The values that signatures are drawn from for people who can be published with nobody: at least m.
    """
    buckets = Buckets()
    for row, value, signature in old:
        buckets.of(signature).rows[value].append(row)
    left = {value: list(rows) for value, rows in new.items() if rows}
    for bucket in list(buckets):
        _balance(bucket, left, m)
    rest = _excess(left, m)
    _assign(buckets, left, m)
    for value, rows in rest.items():
        for row in rows:
            buckets.of(_drawn(value, m, known)).rows[value].append(row)
    return buckets


def _balance(bucket: Bucket, left: dict[Text, list[int]], m: int) -> None:
    """Fills what a bucket lacks with new rows.

    Without t rows of a value the other N − t are eligible if no other value has more than 1/m of them: t ≤ N − m·c with
    c the number of the most frequent other. If they were not, and this is the value that is too frequent, all that is
    above the next one may go.
    """
    for value in bucket.signature:
        counts = {each: len(rows) for each, rows in left.items()}
        own = counts.pop(value, 0)
        other = max(counts.values(), default=0)
        total = own + sum(counts.values())
        spare = total - m * other
        if m * own > total:
            spare = max(spare, own - other)
        taken = max(0, min(bucket.lacks(value), own, spare))
        if taken:
            bucket.rows[value] += left[value][:taken]
            left[value] = left[value][taken:]


def _excess(left: dict[Text, list[int]], m: int) -> dict[Text, list[int]]:
    """Takes out the fewest rows of the most frequent values, so that the others are eligible."""
    taken: dict[Text, list[int]] = {}
    while not eligible(counts := {value: len(rows) for value, rows in left.items()}, m):
        value, *others = sorted(counts, key=lambda each: (-counts[each], in_order(each)))
        following = counts[others[0]] if others else 0
        # (c − x)m ≤ N − x, or down to the next value, whichever comes first
        enough = -(-(counts[value] * m - sum(counts.values())) // (m - 1))
        cut = max(1, min(enough, counts[value] - following))
        taken.setdefault(value, []).extend(left[value][-cut:])
        left[value] = left[value][:-cut]
    return taken


def _assign(buckets: Buckets, left: dict[Text, list[int]], m: int) -> None:
    """Buckets for eligible rows, with nothing missing.

    Each round takes α rows of each of the β most frequent values. With N = qm + r rows left, no value has more than q.
    If β = m and α ≤ N/m − (the next value's number), what is left is eligible again. If no such α ≥ 1 is there, the
    values with q rows, of which there are at most m + r, give one row each: then none has more than q − 1, and at
    least (q−1)m rows are left.
    """
    while total := sum(map(len, left.values())):
        ranked = sorted((each for each in left if left[each]), key=lambda each: (-len(left[each]), in_order(each)))
        following = len(left[ranked[m]]) if len(ranked) > m else 0
        width, height = m, min(len(left[ranked[m - 1]]), total // m - following)
        if height < 1:
            full = total // m
            width, height = max(m, sum(len(left[each]) == full for each in ranked)), 1
        chosen = ranked[:width]
        bucket = buckets.of(tuple(sorted(chosen, key=in_order)))
        for value in chosen:
            bucket.rows[value] += left[value][:height]
            left[value] = left[value][height:]


def _drawn(value: Text, m: int, known: Collection[Text]) -> Signature:
    """A signature for a row that needs counterfeits; it says no more of the value than that it is one of the m."""
    others = SystemRandom().sample(sorted((each for each in known if each != value), key=in_order), m - 1)
    return tuple(sorted((value, *others), key=in_order))
