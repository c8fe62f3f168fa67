"""viewkeeper."""
