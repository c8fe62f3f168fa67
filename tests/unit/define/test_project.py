"""Project folders: what is read, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.pipelines.cli import load_pipeline_spec

from viewkeeper.applying import _creations
from viewkeeper.define.project import find_project, load_project, split_statements
from viewkeeper.define.template import init_project
from viewkeeper.define.timing import Schedule, TargetLag
from viewkeeper.errors import DefinitionError, SetupError

SPEC = "name: shop\nstorage: file:///tmp/x\nlibraries:\n  - glob: {include: transformations/**}\n"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT 1 AS a"


def make(folder: Path, spec: str = SPEC, settings: str | None = None, **views: str) -> Path:
    (folder / "transformations").mkdir(parents=True, exist_ok=True)
    (folder / "spark-pipeline.yml").write_text(spec, encoding="utf-8")
    if settings is not None:
        (folder / "viewkeeper.yml").write_text(settings, encoding="utf-8")
    for name, sql in views.items():
        (folder / "transformations" / f"{name}.sql").write_text(sql, encoding="utf-8")
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(DefinitionError) as caught:
        load_project(folder)
    assert caught.value.code == "VK-PROJECT"
    return str(caught.value)


def test_init_writes_a_project_that_spark_and_we_read_alike(tmp_path: Path) -> None:
    init_project(tmp_path / "it's a shop", "it's".replace("'", "") + " a shop")
    folder = tmp_path / "it's a shop"
    project = load_project(folder)
    spec = load_pipeline_spec(folder / "spark-pipeline.yml")
    assert (project.name, project.namespace) == (spec.name, (spec.database,))
    assert [library.include for library in spec.libraries] == ["transformations/**/*"]
    assert len(project.statements) == 2
    assert project.settings.keys == {"orders": ("order_id",)}
    assert project.settings.connection.warehouse == "warehouse"
    compile((folder / "make_orders.py").read_text(), "make_orders.py", "exec")


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DefinitionError, match="not an empty folder"):
        init_project(tmp_path, "shop")
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["", "a/b", "a\nb: c", "..", "'"])
def test_init_refuses_hostile_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(DefinitionError, match="VK-PROJECT"):
        init_project(tmp_path / "p", name)


def test_find_project_looks_upward(tmp_path: Path) -> None:
    make(tmp_path / "shop", v=VIEW)
    assert find_project(tmp_path / "shop" / "transformations") == tmp_path / "shop"
    with pytest.raises(DefinitionError, match="viewkeeper init"):
        find_project(tmp_path)


def test_statements_are_split_by_tokens_and_keep_their_text_and_place() -> None:
    text = (
        "-- one; two\nCREATE MATERIALIZED VIEW a AS SELECT ';' AS `x;y` /* ; */ FROM t;\n;\n"
        "  create or replace materialized view b as select 1"
    )
    first, second = split_statements(text, Path("v.sql"))
    assert first.sql == "CREATE MATERIALIZED VIEW a AS SELECT ';' AS `x;y` /* ; */ FROM t"
    assert second.sql == "create or replace materialized view b as select 1"
    assert str(second.position) == "line 4, column 3"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DROP TABLE t", "not DROP TABLE T (line 1, column 1)"),
        (VIEW + ";\nINSERT INTO t VALUES (1)", "not INSERT INTO T (line 2, column 1)"),
        ("CREATE STREAMING TABLE t", "not CREATE STREAMING TABLE"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 'x", "transformations/v.sql"),
    ],
)
def test_other_statements_are_refused_with_their_place(tmp_path: Path, sql: str, words: str) -> None:
    assert words in refusal(make(tmp_path, v=sql))


def test_files_come_in_a_fixed_order_each_once(tmp_path: Path) -> None:
    spec = SPEC + "  - glob: {include: transformations/b.sql}\n"
    project = load_project(make(tmp_path, spec, b=VIEW, a=VIEW, c=VIEW))
    assert [str(s.file) for s in project.statements] == [f"transformations/{n}.sql" for n in "abc"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("name: shop\n", "spark-pipeline.yml:1:1: storage: field required"),
        ("name: shop\nstorage: x\nstorrage: y\n", "spark-pipeline.yml:3:1: storrage: there is no such field"),
        (
            "name: shop\nstorage: x\nconfiguration: {a: 1}\n",
            "configuration.a: input should be a valid string",
        ),
        ("name: a\nname: b\nstorage: x\n", "spark-pipeline.yml:2:1: the field name stands here twice"),
        ("- 1\n", "a mapping of fields"),
        ("name: [\n", "spark-pipeline.yml:2:1: "),
        ("name: !!python/object/apply:os.system [id]\nstorage: x\n", "could not determine a constructor"),
        ("name: a\nstorage: " + "[" * 5000 + "\n", "spark-pipeline.yml"),
        ("a: &a [1]\nb: [" + "*a, " * 21 + "]\n", "21 aliases"),
        ("name: &a [*a]\nstorage: x\n", "name: input should be a valid string"),
        ("name: a\nstorage: x\nlibraries: [{glob: {include: ../*}}]\n", "leads out of the project"),
        ("name: a\nstorage: x\nlibraries: [{glob: {include: /etc/**}}]\n", "leads out of the project"),
        ("name: a\nstorage: x\nlibraries: [{glob: {include: 't/**/*.sql'}}]\n", "does not allow the pattern"),
        (
            "name: a\nstorage: x\nlibraries: [{glob: {}}]\n",
            "yml:3:14: libraries[0].glob.include: field required",
        ),
    ],
)
def test_a_bad_spec_is_refused_with_file_line_and_field(tmp_path: Path, spec: str, words: str) -> None:
    assert words in refusal(make(tmp_path, spec))


def test_an_oversized_file_is_refused(tmp_path: Path) -> None:
    assert "larger than" in refusal(make(tmp_path, SPEC + "#" * 1_000_001))


def test_python_definitions_are_not_supported_yet(tmp_path: Path) -> None:
    make(tmp_path).joinpath("transformations", "v.py").write_text("")
    assert "not supported yet" in refusal(tmp_path)


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.sql").write_text(VIEW)
    make(tmp_path / "shop")
    (tmp_path / "shop" / "transformations" / "v.sql").symlink_to(tmp_path / "secret.sql")
    assert "leads out of the project" in refusal(tmp_path / "shop")


def test_settings_are_kept(tmp_path: Path) -> None:
    settings = """
connection: {remote: "sc://host:15002", catalog: lake, ledger: {env: SHOP_LEDGER}}
policy: incremental
target_lag: 15 minutes
keys: {stores: [id]}
foreign_keys: [{table: pos, columns: [storeID], references: stores}]
dependencies: [{table: stores, columns: [city], determine: [region]}]
sources: {crm: {kind: postgres, options: {password: {env: PW}}}}
views: {v: {policy: full, schedule: {cron: 0 6 * * *, time_zone: Asia/Tokyo}}}
service: {grace: 1 minute, alerts: [{command: [notify, now]}]}
"""
    found = load_project(make(tmp_path, settings=settings)).settings
    assert (found.policy_of("v"), found.policy_of("w")) == ("full", "incremental")
    assert found.timing_of("lake.default.V") == Schedule("0 6 * * *", "Asia/Tokyo")
    assert found.timing_of("w") == TargetLag(900)
    assert (found.service.grace, found.service.alerts[0].command) == (60, ("notify", "now"))
    assert found.foreign_keys[0].columns == ("storeID",)
    assert found.references[0].referenced_columns == ("id",), "the key that is declared"
    assert found.dependencies[0].determine == ("region",)
    assert found.connection.ledger is not None
    with pytest.raises(SetupError, match="SHOP_LEDGER"):
        found.connection.ledger.resolve()


def test_a_setting_of_a_view_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    settings = "views: {v: {policy: full}, typo: {policy: full}, lag: {target_lag: 1 hour}, empty: {}}\n"
    found = load_project(make(tmp_path, settings=settings)).settings
    assert found.unmet(["lake.default.v"]) == ["typo", "lag"]


def test_what_is_said_of_a_cubes_view_comes_before_what_is_said_of_the_cube(tmp_path: Path) -> None:
    settings = """
policy: auto
cubes:
  by: {query: "SELECT a, b, count(*) AS n FROM t GROUP BY CUBE (a, b)", policy: incremental}
  all: {query: "SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a)"}
views: {by_a: {policy: full, target_lag: 1 hour}}
"""
    made = {each.name[-1]: each for each, *_ in _creations(load_project(make(tmp_path, settings=settings)))}
    policies = {name: each.policy for name, each in made.items()}
    assert (policies["by_a"], policies["by_b"], policies["all_a"]) == ("full", "incremental", "auto")
    assert (made["by_a"].timing, made["by_b"].timing) == (TargetLag(3600), None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("polcy: full\n", "viewkeeper.yml:1:1: polcy: there is no such field"),
        ("\npolicy: ful\n", "viewkeeper.yml:2:1: policy: input should be 'auto'"),
        ("views:\n  v: {policy: no}\n", "viewkeeper.yml:2:7: views.v.policy"),
        ("connection: {ledger: 'postgresql://u:secret@h/d'}\n", "viewkeeper.yml:1:14: connection.ledger"),
        ("connection: {remote: x, master: y, catalog: z}\n", "master and remote exclude each other"),
        ("connection: {remote: x}\n", "remote needs a catalog"),
        ("keys: {orders: []}\n", "keys.orders"),
        ("target_lag: soon\n", "such as '1 hour 30 minutes'"),
        ("target_lag: 300\n", "write numbers and units"),
        ("target_lag: 1 hour\nschedule: {cron: 0 6 * * *}\n", "exclude each other"),
        ("views: {v: {schedule: {cron: 0 25 * * *}}}\n", "bad hour"),
        ("schedule: {cron: 0 6 * * *, time_zone: Mars}\n", "no time zone 'Mars'"),
        (
            "keys: {b: [x]}\nforeign_keys: [{table: a, columns: [x, y], references: b}]\n",
            "a (x, y) cannot refer to b (x)",
        ),
        ("service: {listen: 8170}\n", "service.listen"),
        ("service: {listen: localhost}\n", "no address"),
        ("service: {backoff: {first: 2 hours}}\n", "longest is shorter than first"),
        ("service: {lineage: {url: 'file:///etc/passwd'}}\n", "http:// or https://"),
        ("service: {alerts: [{command: 'rm -rf x'}]}\n", "as a list"),
        ("service: {alerts: [{timeout: 5 seconds}]}\n", "a command or a webhook"),
    ],
)
def test_bad_settings_are_refused_with_file_line_and_field(tmp_path: Path, settings: str, words: str) -> None:
    said = refusal(make(tmp_path, settings=settings))
    assert words in said
    assert "secret" not in said


def test_a_project_says_by_which_expression_its_joins_are_kept(tmp_path: Path) -> None:
    assert load_project(make(tmp_path / "usual", v=VIEW)).settings.joins == "optimal"
    told = make(tmp_path / "told", settings="joins: n-term\n", v=VIEW)
    assert load_project(told).settings.joins == "n-term"
    assert "joins" in refusal(make(tmp_path / "wrong", settings="joins: best\n", v=VIEW))
