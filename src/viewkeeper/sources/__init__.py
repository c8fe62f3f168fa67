"""Sources: tables that we read but do not own. One file per kind, one contract for all."""
