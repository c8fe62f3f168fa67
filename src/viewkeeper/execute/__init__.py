"""Execute: the steps of a plan as Spark work. Staged results, sessions of our own, and the executor."""
