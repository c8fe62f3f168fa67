"""Spark's keywords, but for those that are common names and mean nothing else where a name may stand.

Most are no reserved words in Spark's default mode; a name that looks like one is quoted all the same, so
that the text means the same under ``spark.sql.ansi.enforceReservedKeywords`` and to a reader.
"""

from __future__ import annotations

_WORDS = """
    add aggregate all alter always analyze and anti any any_value array as asc at atomic
    authorization between bigint binary boolean both buckets by byte call cascade case cast catalogs
    check cluster clustered codegen collate collation column compactions compensation concatenate
    constraint create cross current current_date current_time current_timestamp current_user
    databases date_add date_diff dateadd datediff dayofyear dbproperties dec decimal declare default
    defined definer delete delimited desc describe deterministic dfs directories distinct distribute
    div do double drop else elseif end enforced escape escaped evolution except exchange exclude
    execute exists exit explain export extend extended external extract false fetch fileformat
    filter first float flow following for foreign formatted found from full functions generated
    geography geometry global grant group grouping handler having identifier identity if ignore
    ilike immediate import in include increment indexes inner inpath inputformat insert int integer
    intersect interval into invoker is iterate join json last lateral lazy leading leave left like
    limit load locks long loop materialized microsecond microseconds millisecond milliseconds minus
    modifies msck nanosecond nanoseconds natural no none norely not null nulls numeric of offset on
    only options or order outer outputformat over overlaps partitioned pivot placing preceding
    primary principals procedures real recordreader recordwriter recover recursion recursive reduce
    references rely repeatable replace respect return returns revoke right rollback rollup rows
    schemas select semi separated serdeproperties session_user set sets short show skewed smallint
    some sorted sql sqlexception sqlstate stored stratify streaming struct substring system_time
    table tablesample tblproperties terminated then timediff timestamp_ltz timestamp_ntz
    timestampadd timestampdiff tinyint to touch trailing transform true try_cast unarchive unbounded
    uncache union unique unknown unlock unpivot unset until update use user using values varchar
    variant view void when where while window with within without
"""

KEYWORDS: frozenset[str] = frozenset(_WORDS.split())
