"""Public tables: exact bounds, keys and multiplicities, of values as questions read them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.errors import SourceUnavailableError, UnknownColumnError
from dalenius.measuring import public as module
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.public import public_table
from dalenius.tables.policy import Bounds, Kind, PublicSpec

MORNING = datetime.fromisoformat("2024-01-01 08:00:00")


@pytest.fixture
def table(tmp_path):
    def made(columns, name="t"):
        file = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), file)
        return public_table(PublicSpec(name, (str(file),)))

    return made


@pytest.fixture
def csv(tmp_path):
    def made(text, name="t"):
        file = tmp_path / f"{name}.csv"
        file.write_text(text)
        return public_table(PublicSpec(name, (str(file),)))

    return made


def test_numbers_have_their_least_and_largest_value_and_a_step(table):
    found = table(
        {
            "n": pa.array([3, -2, None], pa.int32()),
            "price": pa.array([Decimal("1.05"), Decimal("-7.10"), None], pa.decimal128(15, 2)),
            "x": [0.1, float("nan"), float("inf")],
        }
    )
    assert found.rows == 3
    assert found.types == {"n": "INTEGER", "price": "DECIMAL(15,2)", "x": "DOUBLE"}
    whole, price, odd = (found.columns[name] for name in ("n", "price", "x"))
    assert (whole.kind, whole.bounds, whole.step, whole.keys) == (Kind.INTEGER, Bounds(-2, 3), 1, (-2, 3))
    assert (price.kind, price.bounds) == (Kind.NUMBER, Bounds(Fraction("-7.1"), Fraction("1.05")))
    assert price.keys is None and price.step == Fraction(1, 100_000)
    # what is not finite counts as absent; one value alone has a step too
    assert odd.bounds == Bounds(Fraction(1, 10), Fraction(1, 10)) and odd.step is not None and odd.step > 0


def test_times_texts_and_truth_values(table):
    found = table(
        {
            "day": pa.array([date(2024, 2, 1), date(2024, 1, 1)], pa.date32()),
            "at": pa.array([MORNING, None], pa.timestamp("us")),
            "moment": pa.array([datetime(2024, 1, 1, 8, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "name": ["b", "a"],
            "ok": [True, None],
            "many": [[1], [2]],
        }
    )
    day, at, moment = (found.columns[name] for name in ("day", "at", "moment"))
    assert (day.kind, day.bounds) == (Kind.DATE, Bounds(date(2024, 1, 1), date(2024, 2, 1)))
    assert day.keys == (date(2024, 1, 1), date(2024, 2, 1))
    assert (at.kind, at.zone) == (Kind.DATETIME, None)
    assert at.bounds == Bounds(MORNING, MORNING)
    assert (moment.zone, moment.bounds) == ("UTC", at.bounds)
    assert (found.columns["name"].kind, found.columns["name"].keys) == (Kind.CATEGORY, ("a", "b"))
    assert found.columns["ok"].kind is Kind.BOOLEAN
    assert "many" not in found.columns and found.types["many"] == "BIGINT[]"


def test_too_many_texts_have_no_keys(table, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEYS", 3)
    found = table({"few": ["a", "b", "c", "c"], "many": ["a", "b", "c", "d"]})
    assert (found.columns["few"].kind, found.columns["few"].keys) == (Kind.CATEGORY, ("a", "b", "c"))
    assert (found.columns["many"].kind, found.columns["many"].keys) == (Kind.TEXT, None)


def test_an_empty_table_says_nothing(table):
    found = table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    assert (found.rows, found.multiplicity(["a"]), found.multiplicity([])) == (0, 0, 0)
    assert (found.columns["a"].bounds, found.columns["a"].keys, found.columns["b"].keys) == (None, None, None)


def test_types_of_a_csv_file_are_guessed_and_hold_for_every_row(csv):
    found = csv("code,name,zip,rate,day,ok\n1,north,01234,0.5,2024-01-01,true\n2,,11234,2,2024-02-01,\n")
    assert dict(found.types) == {
        "code": "BIGINT",
        "name": "VARCHAR",
        "zip": "VARCHAR",  # a code that begins with a zero is no number
        "rate": "DOUBLE",
        "day": "DATE",
        "ok": "BOOLEAN",
    }
    assert found.columns["code"].keys == (1, 2) and found.columns["zip"].keys == ("01234", "11234")
    engine = DuckDB(found.fingerprint)
    assert engine.run(f"SELECT code + 1, day FROM {found.lookup.scan} WHERE NOT ok IS NULL") == [(2, date(2024, 1, 1))]


def test_a_type_that_only_the_first_rows_have_is_not_taken(csv):
    rows = "".join(f"{n},{n},{n}\n" for n in range(30_000))
    found = csv(f"a,b,c\n{rows}0.5,x,1\n")
    assert dict(found.types) == {"a": "DOUBLE", "b": "VARCHAR", "c": "BIGINT"}
    assert (found.rows, found.columns["a"].bounds) == (30_001, Bounds(Fraction(0), Fraction(29_999)))


def test_multiplicity_is_of_combinations_without_nulls(table):
    found = table({"a": [1, 1, 2, None, None, None], "b": ["x", "y", "y", "y", "z", "z"], "c": [1, 1, 1, 1, 1, 1]})
    assert found.multiplicity(["a"]) == 2
    assert found.multiplicity(["b"]) == 3
    assert found.multiplicity(["a", "b"]) == found.multiplicity(["b", "a"]) == 1
    assert found.multiplicity(["c"]) == found.multiplicity([]) == 6


def test_multiplicity_counts_values_that_doubles_cannot_tell_apart(table):
    assert table({"a": [2**53, 2**53 + 1, 1]}).multiplicity(["a"]) == 2


def test_multiplicity_names_a_column_that_is_not_there(table):
    with pytest.raises(UnknownColumnError, match="'nam'") as caught:
        table({"name": ["a"]}).multiplicity(["nam"])
    assert "'name'" in caught.value.fix


def test_a_table_is_kept_until_its_files_change(table):
    first = table({"a": [1, 2]})
    again = public_table(PublicSpec("t", (first.fingerprint.files[0].path,)))
    assert public_table(PublicSpec("t", (first.fingerprint.files[0].path,))) is again
    other = table({"a": [1, 2, 3]})
    assert other is not again and other != again and (again.fingerprint.content != other.fingerprint.content)
    assert hash(other) == hash(other) and len({again, other}) == 2


def test_a_file_that_is_missing_is_told(tmp_path):
    with pytest.raises(SourceUnavailableError):
        public_table(PublicSpec("t", (str(tmp_path / "none.csv"),)))
