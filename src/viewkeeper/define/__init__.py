"""Definitions: views, project files and the graph of views. Frozen data; the docstring is the definition."""
