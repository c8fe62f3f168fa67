"""What every error code means, and what helps. A test finds the codes of ``src`` and compares.

The error itself names the object and gives the hint that suits the case; this is what all cases of a code
have in common.
"""

from __future__ import annotations

from collections.abc import Mapping

Meaning = tuple[str, str]

DEFINITIONS: Mapping[str, Meaning] = {
    "VK-BREAKS-READER": (
        "a view that is replaced would break one that reads it",
        "drop or replace the reader first",
    ),
    "VK-CONSISTENCY": (
        "the level of consistency does not suit the view or its sources",
        "leave the clause out, or declare the source with capture 'log'",
    ),
    "VK-CYCLE": ("views read each other in a circle", "let one of them read the sources instead"),
    "VK-DEFINITION": ("a view, source or project is not defined well", "the message says how"),
    "VK-EXPECTATION": (
        "an expectation is no condition on the view's own columns; or, while refreshing: rows break one that "
        "says FAIL EPOCH",
        "mend the condition, or the rows; DROP ROW and WARN let the epoch go on",
    ),
    "VK-HIDDEN-STATE": ("the property viewkeeper.hidden-state has no such value", "auto, keep or none"),
    "VK-INSTALL-METHOD": (
        "the property viewkeeper.install names a method that does not suit the view",
        "take one that the message lists, or leave the property out",
    ),
    "VK-NAME-TAKEN": (
        "the name belongs to a table, view or source",
        "choose another name, or drop what is there",
    ),
    "VK-NO-DATA": ("the view was created WITH NO DATA and has never been refreshed", "refresh it"),
    "VK-NOT-FOUND": ("a name that was given does not exist", "the message lists what there is"),
    "VK-POLICY": ("there is no such refresh policy", "auto, incremental, incremental strict or full"),
    "VK-PROJECT": ("a file of the project cannot be read as one", "the message names file, line and column"),
    "VK-READ-ONLY": ("a warehouse at a past epoch was asked to change", "use the warehouse itself"),
    "VK-REPRESENTATION": (
        "the property viewkeeper.representation does not suit the view",
        "cnt and dup are for views that are no aggregates, without floating point, maps or collations",
    ),
    "VK-UNANSWERED": ("Spark cannot tell the schema of what the query reads", "the message is Spark's"),
    "VK-UNKNOWN-SOURCE": ("there is no source of that name", "SHOW SOURCES lists them"),
    "VK-UNKNOWN-VIEW": ("there is no materialized view of that name", "SHOW MATERIALIZED VIEWS lists them"),
    "VK-UNSTORABLE": (
        "Iceberg has no type for a column, or cannot partition or sort by what was asked",
        "cast the column, or mend PARTITIONED BY and CLUSTER BY",
    ),
    "VK-UPKEEP-POLICY": (
        "viewkeeper.maintain, viewkeeper.keep-epochs or viewkeeper.keep-days has no such value",
        "auto or manual; a number of epochs; a number of days",
    ),
    "VK-VIEW-EXISTS": ("there is a view of that name", "CREATE OR REPLACE replaces it"),
    "VK-VIEW-IN-USE": ("something else needs the view", "drop what the message names first"),
}

REFRESHING: Mapping[str, Meaning] = {
    "VK-DISK-FULL": (
        "no space is left to write",
        "make room; the next refresh removes what was written in vain",
    ),
    "VK-EXECUTOR-LOST": ("an executor died, with rows that it held", "refresh again; look why executors die"),
    "VK-FOREIGN-WRITE": (
        "somebody else wrote to a view's storage table",
        "viewkeeper repair, or a full refresh; reads through viewkeeper are not affected",
    ),
    "VK-STORAGE-REWRITTEN": (
        "somebody compacted a view's storage table during an epoch, again and again",
        "do it again, at another time; nothing was changed",
    ),
    "VK-NEGATIVE-MULTIPLICITY": (
        "a row would be there less than zero times: a delta was wrong",
        "viewkeeper repair rebuilds the view; please report it",
    ),
    "VK-NOT-INCREMENTAL": (
        "the policy is incremental strict, and the view would be recomputed",
        "see the reason; policy incremental or auto lets it be recomputed",
    ),
    "VK-NOTHING-PROPAGATED": (
        "nothing that was propagated waits, or views have moved since",
        "run viewkeeper propagate first, or refresh without --propagated",
    ),
    "VK-OUT-OF-MEMORY": ("Spark ran out of memory", "give it more, or refresh fewer views at once"),
    "VK-OVERFLOW": ("a number grew out of its type", "cast to a wider type in the view's query"),
    "VK-REFRESH": ("an epoch was given up", "every view is as it was; the message says why"),
    "VK-REFRESH-FAILED": ("Spark failed while a view was computed or installed", "the message is Spark's"),
    "VK-TOO-MANY-TERMS": (
        "joins: all terms, and too many relations of one join changed",
        "take optimal or n-term",
    ),
    "VK-STORAGE-MISSING": ("a view's storage table is gone", "drop the view and create it again"),
}

LEDGER: Mapping[str, Meaning] = {
    "VK-EPOCH-EXPIRED": (
        "maintain has removed what the views held in that epoch",
        "keep more: --keep-epochs, --keep-days",
    ),
    "VK-EPOCH-INVALID": ("what was to be published does not fit the ledger any more", "refresh again"),
    "VK-LEASE-HELD": (
        "somebody else is refreshing; the message says who",
        "wait for them, or for the lease to end",
    ),
    "VK-LEASE-LOST": (
        "our lease ended before the epoch was published",
        "nothing was published; refresh again",
    ),
    "VK-LEDGER": ("the ledger cannot be read or written", "the message says why"),
    "VK-LEDGER-CORRUPT": ("the ledger is damaged, or is not one", "check the path; restore it from a backup"),
    "VK-LEDGER-DRIVER": (
        "the driver of the ledger's database is missing",
        "pip install 'viewkeeper[postgres]'",
    ),
    "VK-LEDGER-MISSING": ("there is no place for a ledger", "give a folder or a database"),
    "VK-LEDGER-NEWER": ("a newer viewkeeper wrote the ledger", "upgrade viewkeeper on this machine"),
    "VK-LEDGER-TEXT": ("the ledger cannot hold that text", "remove NUL characters and unpaired surrogates"),
    "VK-LEDGER-UNREACHABLE": ("the ledger does not answer", "check that it can be written from this machine"),
    "VK-LEDGER-URL": (
        "the address of the ledger will not do",
        "sqlite:///path or postgresql://user@host/database",
    ),
    "VK-UNKNOWN-EPOCH": ("no such epoch was published", "viewkeeper history lists them"),
    "VK-WAREHOUSE-MISSING": (
        "there is no warehouse in that folder",
        "check the path; viewkeeper init begins one",
    ),
}

SETUP: Mapping[str, Meaning] = {
    "VK-WEB-NOT-FOUND": ("the console has no such page", "begin at the graph"),
    "VK-WEB-QUERY": ("Spark refuses a query of the console's", "the message is Spark's own"),
    "VK-LISTEN": ("the service cannot listen there", "end what listens there, or choose with --listen"),
    "VK-LISTEN-OPEN": (
        "others could reach the service, and no token is set",
        "set one under service: in viewkeeper.yml, or listen on 127.0.0.1",
    ),
    "VK-SETUP-EXTRA": ("a package that only some need is missing", "pip install what the hint names"),
    "VK-SPARK-GONE": (
        "Spark ended while the service ran",
        "start the service again: it goes on where it was",
    ),
    "VK-INTERNAL": ("something happened that should not", "viewkeeper --debug shows where; please report it"),
    "VK-SETUP": ("the machine, the session or the catalog lacks something", "the message says what"),
    "VK-SETUP-FOLDER": ("a folder will not do", "choose another"),
    "VK-SETUP-JARS": (
        "Iceberg's jars cannot be fetched or kept",
        "python -m viewkeeper.jars once with a network; VIEWKEEPER_CACHE moves the cache",
    ),
    "VK-SETUP-JAVA": ("there is no Java 17 or 21", "install one; set JAVA_HOME"),
    "VK-SETUP-JDBC": ("Spark lacks a database's JDBC driver", "add it to spark.jars.packages"),
    "VK-SETUP-MEMORY": ("VIEWKEEPER_DRIVER_MEMORY is no amount of memory", "write 2g or 900m"),
    "VK-SETUP-NO-VIEWS": (
        "the catalog cannot hold views",
        "an Iceberg catalog of type rest, hive, nessie, or jdbc with jdbc.schema-version=V1",
    ),
    "VK-SETUP-POSTGRES": ("the driver of PostgreSQL is missing", "pip install 'viewkeeper[postgres]'"),
    "VK-SETUP-SECRET": ("an environment variable or file with a secret is missing", "set it, and run again"),
    "VK-SETUP-SESSION": (
        "the process has a Spark session that was started without Iceberg",
        "stop it, or hand over one that has Iceberg's runtime: connect(spark=…)",
    ),
    "VK-SETUP-SPARK": ("Spark did not start, or does not answer", "the message names the log"),
}

SOURCES: Mapping[str, Meaning] = {
    "VK-BAD-ROW": (
        "a row does not fit the source's schema; the message says file, line and why",
        "mend the file, or declare the source with on_bad_rows 'quarantine'",
    ),
    "VK-FILE-CHANGED": (
        "a file was rewritten or removed, though files are only to be added; or while it was read",
        "bring it back, or use mode 'replace'; refresh again when the delivery is complete",
    ),
    "VK-FILE-EMPTY": ("a file has no content", "deliver it again, or move it away"),
    "VK-FILE-SCHEMA": (
        "a file has other columns than the source",
        "deliver it with them, or declare the source anew",
    ),
    "VK-FILES-NONE": ("there are no files at all", "check the path and whether it is mounted"),
    "VK-FILES-UNREADABLE": (
        "files cannot be listed or read",
        "check the path and the rights of Spark's user",
    ),
    "VK-KEY-TWICE": ("two rows of a source have one key", "mend the delivery, or declare another key"),
    "VK-LOG-BROKEN": (
        "a database's log cannot be followed",
        "CREATE OR REPLACE SOURCE copies the tables again",
    ),
    "VK-NO-HISTORY": ("the source keeps no old states", "verify such views right after a refresh"),
    "VK-NO-QUARANTINE": ("the source sets no rows aside", "declare it with on_bad_rows 'quarantine'"),
    "VK-SLOT-BUSY": ("somebody else reads the replication slot", "two warehouses must not share one"),
    "VK-SLOT-LOST": (
        "the slot or the triggers are gone, or were for a while: changes may be missing",
        "CREATE OR REPLACE SOURCE copies the tables anew, and goes on from there",
    ),
    "VK-SOURCE": ("a source cannot be read", "the message says why"),
    "VK-SOURCE-CHANGED": (
        "a column that a view needs was dropped or retyped, or it is another table or server",
        "put it back, or define the view or source anew",
    ),
    "VK-SOURCE-DIVERGED": ("a table was rolled back, or has another history", "views over it are recomputed"),
    "VK-SOURCE-EXISTS": ("there is a source of that name", "CREATE OR REPLACE SOURCE declares it anew"),
    "VK-SOURCE-EXPIRED": (
        "a version was expired or vacuumed",
        "views over it are recomputed; keep more history",
    ),
    "VK-SOURCE-IDENTITY": (
        "the log would not tell all of a changed row",
        "ALTER TABLE … REPLICA IDENTITY FULL, or another capture; the message says which",
    ),
    "VK-SOURCE-KIND": (
        "there is no such kind of source, or its changes cannot be told",
        "files, postgres or jdbc",
    ),
    "VK-SOURCE-LIMIT": (
        "a question to a database hit a limit of the source",
        "raise it, refresh more often, or copy the table",
    ),
    "VK-SOURCE-MISSING": ("a table is gone", "create it, or drop the views that read it"),
    "VK-SOURCE-OPTION": ("an option of a source is wrong", "the message lists the options of the kind"),
    "VK-SOURCE-RECREATED": (
        "a table was dropped and created again under its name",
        "check that it is the one you mean, then refresh with policy full",
    ),
    "VK-SOURCE-REFUSED": (
        "the server refused what it was asked",
        "viewkeeper sources check says what is missing",
    ),
    "VK-SOURCE-RESTING": (
        "a source failed three times and is left alone for a while",
        "viewkeeper sources check",
    ),
    "VK-SOURCE-SETUP": ("the server lacks something that the capture needs", "the message has the statement"),
    "VK-SOURCE-TYPE": ("a column has a type that cannot be kept", "leave the column out"),
    "VK-SOURCE-UNREACHABLE": (
        "a database does not answer",
        "check address and network; others go on meanwhile",
    ),
    "VK-SOURCE-UNWRITTEN": ("a new column is in no version of the table yet", "write to the table first"),
}

SWEEPING: Mapping[str, Meaning] = {
    "VK-SWEEP": ("an integrator was halted; the view stays as it was", "the message says why"),
    "VK-SWEEP-GAP": ("a message of a source is missing", "create the view anew"),
    "VK-SWEEP-INCOMPLETE": (
        "a part of a global transaction did not come",
        "look at the source that lacks it",
    ),
    "VK-SWEEP-KEYS": ("Strobe and C-Strobe need keys in the view", "SWEEP needs none"),
    "VK-SWEEP-NO-KEY": ("a table shares no column with those before it", "join it on a column, or copy it"),
    "VK-SWEEP-OLDER": ("a source came back with an older state", "create the view anew"),
    "VK-SWEEP-ONE-SOURCE": ("ECA works with one source", "SWEEP works with any number"),
    "VK-SWEEP-REPEATED": ("a message came twice", "create the view anew"),
    "VK-SWEEP-UNANSWERED": ("a query was never answered", "look at the source; create the view anew"),
    "VK-SWEEP-UNASKED": ("an answer to no question came", "create the view anew"),
    "VK-SWEEP-UNDECIDED": ("a simulation has too many states to search", "simulate fewer updates or sources"),
    "VK-SWEEP-UNKNOWN": ("a message of a source or an update that nobody knows", "create the view anew"),
    "VK-SWEEP-UNSUITED": (
        "a view over remote tables is more than select, project and join",
        "let a view over it do the rest, or copy the tables",
    ),
}
