"""The functions of DuckDB that a question over public tables may use.

A list of what is allowed, not of what is not: DuckDB has functions that read files, settings, the clock and chance,
that run SQL or call what a text names, and every version adds some. Names are DuckDB's own, after its parser.
"""

from __future__ import annotations

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
# With fewer arguments than these a function puts the clock in their place, whatever DuckDB's catalogue says of it.
ARGUMENTS = {"age": 2}
# Names that mean the clock or the session where no column is called so.
SESSION = frozenset(
    {
        "current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
        "current_user", "localtime", "localtimestamp", "session_user", "user",
    }
)  # fmt: skip
