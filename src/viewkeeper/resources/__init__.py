"""Files that are shipped with the package."""
