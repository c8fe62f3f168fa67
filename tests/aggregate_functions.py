"""Every aggregate function that views are tested with, and a table for them: columns and values."""

from __future__ import annotations

COLUMNS = {
    "k": ("int", ("0", "1", "2")),
    "g": ("string", ("'a'", "'b'")),
    "i": ("int", ("-2", "0", "1", "3", "7")),
    "j": ("int", ("0", "1", "5")),
    "b": ("bigint", ("-1L", "4L", "6000000000L")),
    "n": ("decimal(8,2)", ("0.00", "1.25", "-3.10", "20.05")),
    "x": ("double", ("0.1D", "0.2D", "-5.5D")),
    "s": ("string", ("'p'", "'q'", "''", "'Q'")),
    "d": ("date", ("DATE'2024-01-01'", "DATE'2024-02-29'")),
    "t": ("boolean", ("true", "false")),
}
CALLS = {
    "counts": "count(*), count(i), count(i, j), count_if(t), count(*) FILTER (WHERE i > 0)",
    "sums": "sum(i), sum(b), sum(n), sum(i) FILTER (WHERE t), sum(i + j)",
    "floating": "sum(x), avg(x), var_pop(x)",
    "averages": "avg(i), avg(b), avg(n), avg(i) FILTER (WHERE j = 1), mean(j)",
    "extrema": "min(i), max(i), min(s), max(d), min(n), max(t), min(x), "
    "max(i) FILTER (WHERE t), min(DISTINCT j)",
    "logic": "bool_and(t), bool_or(t), every(i > 0), some(j = 5), any(t) FILTER (WHERE i > 0)",
    "bits": "bit_and(i), bit_or(j), bit_xor(b), bit_xor(i) FILTER (WHERE t)",
    "variance": "var_pop(i), var_samp(n), variance(j), stddev(i), stddev_pop(n), std(j)",
    "covariance": "covar_pop(i, j), covar_samp(i, n), corr(i, j), corr(n, j) FILTER (WHERE t)",
    "distinct": "count(DISTINCT i), count(DISTINCT i, s), sum(DISTINCT i), avg(DISTINCT n), "
    "count(DISTINCT s) FILTER (WHERE t)",
    "order_statistics": "median(i), percentile(n, 0.25), percentile(i, array(0.1, 0.9)), "
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY i)",
    "approximate": "approx_count_distinct(i), approx_count_distinct(s, 0.1)",
    "lists": "collect_list(i), collect_set(s), array_agg(j) FILTER (WHERE t), listagg(s, "
    "','), listagg(DISTINCT s, '/'), string_agg(s, ',') WITHIN GROUP (ORDER BY i DESC)",
    "by": "min_by(s, i), max_by(s, i), max_by(i, d) FILTER (WHERE t), min_by(x, n)",
    "modes": "mode(i), mode(s), mode(t) FILTER (WHERE i > 0)",
    "moments": "skewness(i), kurtosis(n), regr_slope(i, j), regr_count(i, j)",
}


def named(calls: str) -> str:
    """The calls as items of a SELECT list: c0, c1, …"""
    depth, parts, current = 0, list[str](), ""
    for sign in calls:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += sign
    return ", ".join(f"{call} AS c{at}" for at, call in enumerate([*parts, current.strip()]))
