"""A release as csv, parquet or json, by the file's ending."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.releasing.targets import check_target, unwritable

if TYPE_CHECKING:
    from dalenius.queries.release import Release


def write(release: Release, target: Path) -> None:
    """Writes a release; a file that is there is replaced."""
    check_target(target)
    try:
        _WRITERS[target.suffix.lower()](release, target)
    except OSError as error:
        raise unwritable(target, error) from None


def _write_csv(release: Release, target: Path) -> None:
    from pyarrow import csv

    csv.write_csv(_flat(release.to_arrow()), target, csv.WriteOptions(quoting_style="needed"))


def _flat(table: Any) -> Any:
    """The table with lists as texts, [1.0, null]: csv has none."""
    import pyarrow as pa

    for at, each in enumerate(table.schema):
        if pa.types.is_list(each.type):
            texts = [None if cell is None else json.dumps(cell) for cell in table.column(at).to_pylist()]
            table = table.set_column(at, each.name, pa.array(texts, pa.string()))
    return table


def _write_parquet(release: Release, target: Path) -> None:
    from pyarrow import parquet

    about = {name: value for name, value in _tree(release).items() if name not in {"rows", "noise_error", "columns"}}
    parquet.write_table(release.to_arrow().replace_schema_metadata({"dalenius": json.dumps(about)}), target)


def _write_json(release: Release, target: Path) -> None:
    target.write_text(json.dumps(_tree(release), ensure_ascii=False, allow_nan=False, indent=1) + "\n", "utf-8")


def _tree(release: Release) -> dict[str, Any]:
    return {"question": release.question, **release.to_dict()}


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".json": _write_json}
