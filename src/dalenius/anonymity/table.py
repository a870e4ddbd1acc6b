"""A table of texts, each column as codes into its distinct values.

Rows that are published are rows of text: a label such as `20-29` or `*` has no type. So every cell is a text, or
missing (None), which is a value like any other. The empty text is missing as well: CSV cannot tell them apart, so what
is counted here is what a reader of the published file counts. Values are kept once, sorted (as numbers where all are),
and the codes are what everything here computes with: what comes out does not depend on the order of the rows.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError, SourceUnavailableError, UnknownColumnError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DELIMITERS = ",;"


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `values[codes[row]]` is the cell.

    Attributes:
        codes: For each row an index into `values`.
        values: The distinct texts: in numeric order where all are numbers, else in text order; None (missing) last.
        kind: The Arrow type that it was read as. Parquet gets it back where all values still are of that type.
    """

    codes: NDArray[np.int32]
    values: tuple[str | None, ...]
    kind: str = "string"

    @staticmethod
    def of(cells: Iterable[str | None]) -> Column:
        """The column with these cells.

        >>> Column.of(["10", "9", None, "9"]).values
        ('9', '10', None)
        """
        listed = list(cells)
        places: dict[str | None, int] = {}
        codes = np.fromiter((places.setdefault(cell, len(places)) for cell in listed), np.int32, len(listed))
        return Column.coded(codes, tuple(places))

    @staticmethod
    def coded(codes: NDArray[Any], values: tuple[str | None, ...], kind: str = "string") -> Column:
        """The column with these codes into distinct values of any order; values that no row has are dropped."""
        if "" in values:
            place = values.index("")
            if None in values:
                codes = np.where(codes == place, values.index(None), codes)  # place is dropped: no row has it now
            else:
                values = (*values[:place], None, *values[place + 1 :])
        used = np.bincount(codes, minlength=len(values)) > 0
        order = _order(values, np.flatnonzero(used).tolist())
        new = np.full(len(values), -1, np.int32)
        new[order] = np.arange(len(order), dtype=np.int32)
        return Column(new[codes], tuple(values[place] for place in order), kind)

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """The values as numbers, nan for missing; None where some value is no number."""
        if not all(value is None or _NUMBER.fullmatch(value) for value in self.values):
            return None
        return np.array([np.nan if value is None else float(value) for value in self.values])

    def cells(self) -> list[str | None]:
        """The cell of each row."""
        return [self.values[code] for code in self.codes]


def _order(values: tuple[str | None, ...], places: list[int]) -> list[int]:
    numeric = all((value := values[place]) is None or _NUMBER.fullmatch(value) for place in places)

    def key(place: int) -> tuple[bool, float, str]:
        value = values[place]
        return value is None, float(value) if numeric and value is not None else 0.0, value or ""

    return sorted(places, key=key)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length, in the order of the header.

    >>> table = Table.of({"age": ["31", "7"], "city": ["Bonn", None]})
    >>> table.names, table.rows, table["age"].values
    (('age', 'city'), 2, ('7', '31'))
    """

    columns: Mapping[str, Column]
    rows: int

    @staticmethod
    def of(cells: Mapping[str, Iterable[str | None]]) -> Table:
        """The table with these cells."""
        columns = {name: Column.of(each) for name, each in cells.items()}
        lengths = {len(column.codes) for column in columns.values()}
        if len(lengths) > 1:
            raise InputError("These columns are not of one length.", why="A table has rows.", fix="Fill the gaps.")
        return Table(MappingProxyType(columns), lengths.pop() if lengths else 0)

    @property
    def names(self) -> tuple[str, ...]:
        """The header."""
        return tuple(self.columns)

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise UnknownColumnError(
                f"The table has no column {name!r}.", why="Names must be as in its header.", fix="Correct the name."
            )
        return self.columns[name]

    def replace(self, columns: Mapping[str, Column]) -> Table:
        """With some columns exchanged, in the same order."""
        return Table(MappingProxyType({name: columns.get(name, own) for name, own in self.columns.items()}), self.rows)

    def sorted(self) -> Table:
        """The rows in the order of their cells, which says nothing that the cells do not say.

        >>> Table.of({"age": ["31", "7", "31"], "ill": ["flu", "flu", "cold"]}).sorted()["age"].cells()
        ['7', '31', '31']
        """
        keys = [each.codes for each in self.columns.values()]
        return self.take(np.lexsort(keys[::-1])) if keys else self

    def take(self, rows: NDArray[Any]) -> Table:
        """These rows, in this order."""
        taken = {name: Column.coded(each.codes[rows], each.values, each.kind) for name, each in self.columns.items()}
        return Table(MappingProxyType(taken), len(rows))


def read_table(path: Path) -> Table:
    """A table from CSV (`,` or `;`, whichever its header has more of) or, by its ending, from Parquet.

    Raises:
        SourceUnavailableError: There is no such file, it may not be read, or it is a damaged Parquet file.
        InputError: It is no table.
    """
    import pyarrow as pa

    parquet = path.suffix.lower() in {".parquet", ".pq"}
    try:
        found = _parquet(path) if parquet else _csv(path)
        columns = {name: _column(found.column(name)) for name in found.column_names}
    except OSError as error:
        raise SourceUnavailableError(
            f"The file {path.name} cannot be read.",
            why=error.strerror or "It is not there or not what its ending says.",
            fix="Check its name, its folder and who may read it.",
        ) from None
    except (pa.ArrowException, UnicodeDecodeError):  # whose words hold rows
        kind = SourceUnavailableError if parquet else InputError
        raise kind(
            f"The file {path.name} cannot be read as a table.",
            why="Its rows do not all have as many cells as its header, or its text is not UTF-8, or it is damaged.",
            fix="Write it anew as CSV in UTF-8, with a header, or as Parquet.",
        ) from None
    return Table(MappingProxyType(columns), found.num_rows)


def _parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        found = pq.ParquetFile(file).read()
    _check_names(found.column_names, path)
    return found


def _csv(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", first).count)
        file.seek(0)
        try:
            names = next(csv.reader(file, delimiter=delimiter), [])
        except csv.Error:
            raise pa.ArrowInvalid("header") from None
    _check_names(names, path)
    return arrow_csv.read_csv(
        path,
        parse_options=arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
        ),
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows_after_names=1, use_threads=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _check_names(names: list[str], path: Path) -> None:
    if not names or not all(name.strip() for name in names):
        raise InputError(
            f"The file {path.name} has no header.",
            why="Its first line must name every column.",
            fix="Add a first line with the names.",
        )
    if len(set(names)) < len(names):
        raise InputError(
            f"The file {path.name} has a column name twice.",
            why="Roles are told by name.",
            fix="Give every column its own name.",
        )


def _column(chunked: Any) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = str(chunked.type)
    if pa.types.is_dictionary(chunked.type):
        kind = str(chunked.type.value_type)
        chunked = pc.cast(chunked, chunked.type.value_type)
    whole = chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
    encoded = pc.cast(whole, pa.string()).dictionary_encode(null_encoding="encode")
    return Column.coded(encoded.indices.to_numpy(zero_copy_only=False), tuple(encoded.dictionary.to_pylist()), kind)


def write_table(table: Table, path: Path) -> None:
    """Writes comma CSV, or Parquet where the name says so; the file is there whole or not at all."""
    with whole_file(path) as part:
        if path.suffix.lower() in {".parquet", ".pq"}:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({name: _arrow(each) for name, each in table.columns.items()}), part)
        else:
            _write_csv(table, part)


def _arrow(column: Column) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pa.array(column.values, pa.string())
    if column.kind != "string":
        with suppress(pa.ArrowException, ValueError):  # generalised meanwhile, or a type with parameters
            values = pc.cast(values, pa.type_for_alias(column.kind))
    return values.take(pa.array(column.codes))


def _write_csv(table: Table, part: Path) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    def quoted(value: str | None) -> str:
        if value is None:
            return '""' if len(table.columns) == 1 else ""  # an empty line is no row
        return '"' + value.replace('"', '""') + '"' if re.search(r'[",;\r\n]', value) else value

    with part.open("wb") as file:
        file.write((",".join(map(quoted, table.names)) + "\n").encode())
        texts = [pa.array([quoted(value) for value in each.values], pa.string()) for each in table.columns.values()]
        for start in range(0, table.rows, 1 << 18):
            cut = slice(start, start + (1 << 18))
            cells = [
                text.take(pa.array(each.codes[cut])) for text, each in zip(texts, table.columns.values(), strict=True)
            ]
            lines = pc.binary_join_element_wise(*cells, ",") if len(cells) > 1 else cells[0]
            file.write("\n".join(lines.to_pylist()).encode() + b"\n")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block ends well and is gone otherwise.

    Raises:
        SourceUnavailableError: Nothing can be written there.
    """
    part: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
        part = Path(name)
        os.fchmod(handle, 0o600)
        os.close(handle)
        yield part
        part.replace(path)
    except OSError as error:
        raise SourceUnavailableError(
            f"The file {path.name} cannot be written.",
            why=error.strerror or "The folder does not take it.",
            fix="Check that the folder is there, is yours and has room.",
        ) from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
