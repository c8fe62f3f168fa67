"""Theory only: relations, deltas, aggregates. No SQL dialect, no Spark, no I/O."""
