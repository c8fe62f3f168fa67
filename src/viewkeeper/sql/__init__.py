"""Spark SQL as text: quoting, and printing our algebra so that Spark and people can read it."""
