"""The experiments of the WHIPS paper (Labio et al. 2000, Section 4): findings, and how ours are judged."""

from __future__ import annotations

from judging import Judge, by_test, each_row, growing, of, ratio, steady
from papers import Experiment, Finding, Paper


def _figure(
    number: int, title: str, setup: str, *findings: tuple[str, str, Judge], shown: str = ""
) -> Experiment:
    """One figure; the results are those of ``benchmarks/whips.py``."""
    found = tuple(
        Finding(says, f"{where}, Figure {shown or number}", judge) for says, where, judge in findings
    )
    return Experiment(f"Figure {shown or number}: {title}", setup, found, (f"whips-{number}",))


def _of(number: int) -> tuple[str]:
    return (f"whips-{number}",)


_RATIO = "TPC-D scale 0.1, update ratio 1 to 10 %."
_SIZE = "Deltas of one size, scale 0.04 to 0.36."
_BY_MERGE = ratio("delete, insert", "one MERGE")

WHIPS = Paper(
    "WHIPS",
    "W. J. Labio, J. Yang, Y. Cui, H. Garcia-Molina, J. Widom: Performance Issues in Incremental Warehouse "
    "Maintenance. VLDB 2000",
    (
        Experiment(
            "Table 1: per-tuple delta installation costs",
            "Measured by the paper from Figure 18.",
            (
                Finding(
                    "in the common case where … multiplicity is less than 3, the DUP representation is "
                    "preferable",
                    "Section 4.1.3, Table 1",
                    by_test(
                        "tests/unit/plan/test_prices.py",
                        "by these costs counts pay from 2.8 copies on",
                    ),
                ),
            ),
            table="""\
| | DUP representation | CNT representation |
| --- | --- | --- |
| ∇ (deletion) | 1.94 ms / tuple | 2.49 ms / multiplicity / tuple |
| △ (insertion) | 0.57 ms / tuple | 4.48 ms / multiplicity / tuple |""",
        ),
        Experiment(
            "Table 2: sensitivity of the algorithms",
            "From 0 (insensitive) to 3 (very sensitive).",
            (
                Finding(
                    "different maintenance algorithms react differently to these factors",
                    "Section 4.2.3, Table 2",
                    by_test(
                        "tests/unit/plan/test_prices.py",
                        "given its costs, the price model has this order",
                    ),
                ),
            ),
            table="""\
| | fixed-ratio, delta size | fixed-ratio, base size | fixed-size, delta size | fixed-size, base size |
| --- | --- | --- | --- | --- |
| FULLRECOMP | 0 | 3 | 0 | 3 |
| SDOVERWRITE | 1 | 2 | 1 | 0 |
| SDBATCH | 2 | 1 | 1 | 0 |
| SDCURSOR | 3 | 0 | 1 | 0 |""",
        ),
        Experiment(
            "Figures 6 to 12: the Parts example",
            "One summary table, five changed rows.",
            (
                Finding(
                    "the summary-delta, the deletions and the insertions of Parts",
                    "Section 3.2, Figures 6 to 12",
                    by_test(
                        "tests/unit/algebra/test_parts_example.py", "each of the four algorithms gives them"
                    ),
                    quoted=False,
                ),
            ),
        ),
        _figure(
            13,
            "GENINSTALL under CNT",
            _RATIO,
            (
                "cursor-based GENINSTALL is preferred for deletion installation and SQL-based GENINSTALL "
                "… for "
                "insertion installation",
                "Section 4.1.1",
                each_row(_of(13), "delete and insert ÷ one MERGE", _BY_MERGE, least=1),
            ),
        ),
        _figure(
            14,
            "GENINSTALL under CNT",
            _SIZE,
            (
                "the running time of cursor-based GENINSTALL is insensitive to the change in |L|, while "
                "the running "
                "time of SQL-based GENINSTALL grows linearly with |L|",
                "Section 4.1.1",
                steady(_of(14), "one MERGE", of("one MERGE")),
            ),
        ),
        _figure(
            15,
            "KEYINSTALL vs. GENINSTALL under DUP",
            _RATIO,
            (
                "KEYINSTALL is in fact slower than GENINSTALL when the update ratio is below 5%",
                "Section 4.1.2",
                each_row(
                    _of(15),
                    "KEYINSTALL ÷ GENINSTALL",
                    ratio("KEYINSTALL", "GENINSTALL by hash"),
                    least=1,
                    where=lambda row: float(row["update ratio %"]) < 5,
                ),
            ),
        ),
        _figure(
            16,
            "DUP vs. CNT for delta installation, no duplicates",
            _RATIO,
            (
                "delta installation … under the CNT representation is about twice as expensive as delta "
                "installation "
                "under the DUP representation",
                "Section 4.1.3",
                each_row(_of(16), "CNT ÷ DUP", ratio("CNT", "DUP"), least=1.5),
            ),
        ),
        _figure(
            17,
            "DUP vs. CNT for delta installation, multiplicity 3",
            _RATIO,
            (
                "delta installation under the DUP representation is slightly slower than under the CNT "
                "representation",
                "Section 4.1.3",
                each_row(_of(17), "DUP ÷ CNT", ratio("DUP", "CNT"), least=1),
            ),
        ),
        _figure(
            18,
            "DUP vs. CNT for delta installation",
            _SIZE + " Multiplicity 3.",
            (
                "all four plots become nearly flat at large scale factors",
                "Section 4.1.3",
                steady(_of(18), "DUP", of("DUP")),
            ),
        ),
        _figure(
            19,
            "DUP vs. CNT for delta computation",
            "Update ratio 5 %, multiplicity 1 to 5.",
            (
                "as we increase the multiplicity, computing derived view deltas under DUP becomes "
                "progressively "
                "slower than CNT",
                "Section 4.1.3",
                growing(_of(19), "DUP ÷ CNT, from 1 to 5 copies", ratio("LO_1, DUP", "LO_1, CNT"), by=1.1),
            ),
        ),
        _figure(
            20,
            "maintaining V_large",
            _RATIO,
            (
                "FULLRECOMP is far more expensive than the other three algorithms",
                "Section 4.2.1",
                each_row(_of(20), "FULLRECOMP ÷ SDBATCH", ratio("FULLRECOMP", "SDBATCH"), least=2),
            ),
            (
                "SDCURSOR is most sensitive to the change in update ratio, and SDOVERWRITE is least "
                "sensitive",
                "Section 4.2.1",
                growing(_of(20), "SDCURSOR ÷ SDOVERWRITE", ratio("SDCURSOR", "SDOVERWRITE")),
            ),
        ),
        _figure(
            21,
            "installing deltas for V_large",
            _RATIO,
            (
                "SDBATCH has a much shorter install phase than SDCURSOR",
                "Section 4.2.1",
                each_row(_of(21), "SDCURSOR ÷ SDBATCH", ratio("SDCURSOR", "SDBATCH"), least=1),
            ),
        ),
        _figure(
            22,
            "maintaining V_large",
            _SIZE,
            (
                "the performance of FULLRECOMP deteriorates dramatically as |L| increases",
                "Section 4.2.1",
                growing(_of(22), "FULLRECOMP", of("FULLRECOMP"), by=2),
            ),
            (
                "SDCURSOR is almost unaffected by the increase in |L|",
                "Section 4.2.1",
                steady(_of(22), "SDCURSOR", of("SDCURSOR")),
            ),
        ),
        _figure(
            23,
            "installing deltas for V_large",
            _SIZE,
            (
                "the install phase of SDCURSOR is not affected by the size of the base view",
                "Section 4.2.1",
                steady(_of(23), "SDCURSOR", of("SDCURSOR")),
            ),
            (
                "the install phase of SDBATCH … increases as the base view becomes larger",
                "Section 4.2.1",
                growing(_of(23), "SDBATCH", of("SDBATCH"), by=1.1),
            ),
        ),
        _figure(
            24,
            "maintaining V_small",
            _RATIO,
            (
                "the total maintenance time increases at about the same rate for all three algorithms",
                "Section 4.2.2",
                steady(_of(24), "SDCURSOR ÷ SDBATCH", ratio("SDCURSOR", "SDBATCH")),
            ),
        ),
        _figure(
            25,
            "installing deltas for V_small",
            _RATIO,
            (
                "SDBATCH has a shorter install phase than SDCURSOR, and neither is affected by the "
                "update ratio",
                "Section 4.2.2",
                each_row(_of(25), "SDCURSOR ÷ SDBATCH", ratio("SDCURSOR", "SDBATCH"), least=1),
            ),
        ),
        _figure(
            26,
            "maintaining V_small",
            _SIZE,
            (
                "FULLRECOMP becomes dramatically slower as the base view becomes larger",
                "Section 4.2.2",
                growing(_of(26), "FULLRECOMP", of("FULLRECOMP"), by=2),
            ),
            (
                "the other three algorithms are not affected",
                "Section 4.2.2",
                steady(_of(26), "SDBATCH", of("SDBATCH")),
            ),
        ),
        _figure(
            27,
            "installing deltas for V_small",
            _SIZE,
            (
                "the install phase of SDCURSOR and SDBATCH is not affected by the increasing base view size",
                "Section 4.2.2",
                steady(_of(27), "SDBATCH", of("SDBATCH")),
            ),
        ),
        _figure(
            28,
            "effect of an index on delta installation",
            _RATIO + " Iceberg has no index: ours is the layout of files, kept sorted or rebuilt.",
            (
                "rebuilding the index after delta installation is better than maintaining the index "
                "incrementally "
                "only for high update ratios",
                "Section 4.3.1",
                growing(_of(28), "kept ÷ rebuilt", ratio("kept sorted", "rebuilt afterwards")),
            ),
        ),
        _figure(
            29,
            "compute/install ratio",
            "Scale 0.36, update ratio 1 to 10 %.",
            (
                "the compute/install ratio of V_SFWG is much higher than that of V_SFW",
                "Section 4.3.2",
                each_row(_of(29), "V_SFWG ÷ V_SFW", ratio("ratio V_SFWG", "ratio V_SFW"), least=2),
            ),
            shown="29 and 30",
        ),
        _figure(
            31,
            "compute/install ratio",
            _SIZE,
            (
                "the compute/install ratio of V_SFW remains fairly low, … of V_SFWG increases dramatically",
                "Section 4.3.2",
                growing(_of(31), "V_SFWG", of("ratio V_SFWG"), by=2),
            ),
            shown="31 and 32",
        ),
    ),
)
