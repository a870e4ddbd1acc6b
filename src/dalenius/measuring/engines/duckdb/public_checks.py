"""A question over public tables, as DuckDB's own parser sees it: only what is on the lists may run.

The text was parsed by sqlglot, checked and written anew; this looks at the same statement a second time, through the
eyes of the engine that will run it, so that two parsers would have to be misled in the same way.

Functions. A list of what is allowed, not of what is not: DuckDB has functions that read files, settings, the clock and
chance, that run SQL or call what a text names, and every version adds some. Names are DuckDB's own, after its parser.

Tables. A name that a WITH gives holds inside of it only: in what follows it in the list, and in the query that it
belongs to. Anywhere else the same name is a table; and for a name that is none DuckDB looks for a file of that name. So
a name is taken for one of a WITH only where that WITH is in sight, and otherwise it must be a public table. Where
DuckDB is more generous than what is said here, a question is refused; it must never be the other way round. Both
readers of a question are looked at with the same rules: sqlglot's tree (`queries.public_scopes`), and here what
DuckDB's own parser made of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

_OPERATORS = """
! !~~ !~~* % & && * ** + - / // < <-> << <= <=> <@ = != > >= >> @> ^ ^@ | || ~ ~~ ~~* ~~~ !__postfix like_escape
not_like_escape ilike_escape not_ilike_escape
"""

_NUMBERS = """
abs acos acosh add asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least
least_common_multiple lgamma ln log log10 log2 mod multiply nextafter pi pow power radians round round_even sign
signbit sin sinh sqrt subtract tan tanh trunc xor
"""

_TEXTS = """
array_extract ascii bin bit_length char_length character_length chr concat concat_ws contains damerau_levenshtein
editdist3 ends_with format format_bytes from_base64 hamming hash hex instr jaccard jaro_similarity
jaro_winkler_similarity lcase left length levenshtein lower lpad ltrim md5 mismatches nfc_normalize octet_length ord
position prefix printf regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
regexp_split_to_array repeat replace reverse right rpad rtrim sha1 sha256 split split_part starts_with str_split
str_split_regex string_split string_split_regex string_to_array strip_accents strlen strpos substr substring suffix
to_base64 to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode
"""

_TIMES = """
age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname
dayofmonth dayofweek dayofyear decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day
make_date make_time make_timestamp microsecond millennium millisecond minute month monthname nanosecond quarter second
strftime strptime time_bucket timezone to_centuries to_days to_decades to_hours to_microseconds to_millennia
to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week weekday
weekofyear year yearweek
"""

_CHOICES = "coalesce if ifnull nullif switch typeof"

_NESTED = """
array_agg array_concat array_contains array_distinct array_has array_length array_position array_slice array_sort
array_to_string array_value cardinality element_at flatten generate_series len list list_any_value list_append
list_avg list_concat list_contains list_count list_distinct list_element list_extract list_filter list_first list_has
list_has_all list_has_any list_last list_max list_median list_min list_pack list_position list_prepend list_reduce
list_reverse list_reverse_sort list_slice list_sort list_sum list_transform list_unique list_value list_zip map
map_contains map_entries map_extract map_keys map_values range row struct_extract struct_extract_at struct_pack unnest
"""

_AGGREGATES = """
any_value approx_count_distinct approx_quantile arg_max arg_max_null arg_min arg_min_null argmax argmin avg bit_and
bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg first fsum
geomean geometric_mean group_concat grouping grouping_id histogram kahan_sum kurtosis kurtosis_pop last listagg mad
max max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp string_agg sum
sum_no_overflow sumkahan var_pop var_samp variance wavg weighted_avg
"""

_WINDOWS = """
cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number
"""

_GROUPS = (_OPERATORS, _NUMBERS, _TEXTS, _TIMES, _CHOICES, _NESTED, _AGGREGATES, _WINDOWS)
FUNCTIONS = frozenset(name for group in _GROUPS for name in group.split())
AGGREGATES = frozenset(_AGGREGATES.split())
# With fewer arguments than these a function puts the clock in their place, whatever DuckDB's catalogue says of it.
ARGUMENTS = {"age": 2}
# Names that mean the clock or the session where no column is called so.
SESSION = frozenset(
    {
        "current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
        "current_user", "localtime", "localtimestamp", "session_user", "user",
    }
)  # fmt: skip

_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST", "TABLE_FUNCTION"}
_ENDS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"}
_ORDERS = {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
_TYPES = _NODES | _SOURCES | _ENDS | _ORDERS
_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA",
    "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip
_SYSTEM = ("duckdb_", "pg_", "pragma_", "sqlite_")  # how DuckDB's own tables are called

_ASCII = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_NONE: frozenset[str] = frozenset()


def refused(tree: Any, tables: Collection[str], columns: Collection[str]) -> str | None:
    """What of a statement may not run, in words; None: all of it may.

    Args:
        tree: What `json_serialize_sql` gives for it.
        tables: The public tables that it may read, in lower case.
        columns: All of their columns, in lower case.
    """
    if tree.get("error"):
        return "SQL that DuckDB does not read"
    if len(tree.get("statements", ())) != 1:
        return "a statement that is not one SELECT"
    nodes = list(nodes_of(tree["statements"][0]["node"]))
    own = {folded(name) for node, _ in nodes for name in _common(node)}
    system = sorted(name for name in own if name.startswith(_SYSTEM))
    if system:  # outside its scope the name would mean DuckDB's table
        return f"the name {system[0]}"
    for node, seen in nodes:
        words = _refused(node, seen | set(tables), columns)
        if words is not None:
            return words
    return None


def _refused(node: Mapping[str, Any], tables: Collection[str], columns: Collection[str]) -> str | None:
    kind = node.get("class")
    if kind is not None:
        return _refused_expression(node, str(kind), columns)
    if node.get("sample") or node.get("at_clause"):
        return "a sample of a table" if node.get("sample") else "AT"
    type_ = node.get("type")
    if isinstance(type_, str) and type_ not in _TYPES and _means_a_part(node):
        return type_.removesuffix("_NODE").removesuffix("_REF").replace("_", " ")
    if type_ == "BASE_TABLE":
        qualified = node.get("schema_name") or node.get("catalog_name") or _has_more_names(node)
        if qualified or folded(str(node.get("table_name"))) not in tables:
            return "a table that is not public"
    if type_ == "TABLE_FUNCTION" and _name(node.get("function") or {}) != "unnest":
        return f"the table function {_name(node.get('function') or {})}"
    return None


def _refused_expression(node: Mapping[str, Any], kind: str, columns: Collection[str]) -> str | None:
    if kind not in _CLASSES:
        return kind.lower().replace("_", " ")
    if kind in {"FUNCTION", "WINDOW"}:
        if _name(node) not in FUNCTIONS or node.get("export_state"):
            return f"the function {_name(node)}"
        given = node.get("arguments") or node.get("children") or ()  # as newer and older versions of DuckDB call them
        if len(given) < ARGUMENTS.get(_name(node), 0):
            return f"without its second argument the function {_name(node)}"
        if node.get("schema") or node.get("catalog") or _has_more_names(node):
            return f"a name before the function {_name(node)}"
    elif kind == "COLUMN_REF":
        name = str((node.get("column_names") or [""])[-1]).lower()
        if name in SESSION and name not in columns:
            return name.upper()
    elif kind == "TYPE" and (node.get("schema") or node.get("catalog")):
        return "a type with a schema"
    return None


def _means_a_part(node: Mapping[str, Any]) -> bool:
    """Whether "type" says which part of a statement this is; in the description of a value it does not."""
    return "id" not in node and "kind" not in node and not str(node["type"]).endswith("_TYPE_INFO")


def _name(node: Mapping[str, Any]) -> str:
    return str(node.get("function_name", "")).lower()


def _has_more_names(node: Mapping[str, Any]) -> bool:
    """Whether something stands before a name, by how newer versions of DuckDB spell it."""
    path = (node.get("qualified_name") or {}).get("path")
    return path is not None and len(path) != 1


def _common(node: Mapping[str, Any]) -> Iterator[str]:
    """The names that a WITH gives."""
    for entry in (node.get("cte_map") or {}).get("map", ()):
        yield str(entry["key"])
    if node.get("type") in {"RECURSIVE_CTE_NODE", "CTE_NODE"}:
        yield str(node.get("cte_name") or node.get("ctename") or "")


def folded(name: str) -> str:
    """A name as DuckDB compares it: A to Z in lower case, and nothing else; `lower` would take K (Kelvin) for k."""
    return name.translate(_ASCII)


def nodes_of(tree: Any) -> Iterator[tuple[Mapping[str, Any], frozenset[str]]]:
    """All nodes of what DuckDB's parser made, each with the names that a WITH in sight gives."""
    waiting: list[tuple[Any, frozenset[str]]] = [(tree, _NONE)]
    while waiting:
        node, seen = waiting.pop()
        if isinstance(node, list):
            waiting += [(each, seen) for each in node]
        if not isinstance(node, dict):
            continue
        yield node, seen
        for entry in (node.get("cte_map") or {}).get("map", ()):
            waiting.append((entry["value"], seen))
            seen |= {folded(str(entry["key"]))}
        # Where the node itself is a WITH, its name holds in one part of it.
        inside = {"RECURSIVE_CTE_NODE": "right", "CTE_NODE": "child"}.get(str(node.get("type")))
        itself = folded(str(node.get("cte_name") or node.get("ctename") or ""))
        for key, value in node.items():
            if key != "cte_map":
                waiting.append((value, seen | {itself} if key == inside and itself else seen))
