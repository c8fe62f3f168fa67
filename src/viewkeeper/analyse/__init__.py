"""Analyse: from a query's text to its normal form and a verdict."""
