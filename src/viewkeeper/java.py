"""Is there a Java that Spark can run on? If not: what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = (17, 21)

_INSTALL = {
    "linux": "On Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless",
    "darwin": "On macOS: brew install openjdk@17 (then follow its caveat about the symlink)",
    "win32": "On Windows: winget install EclipseAdoptium.Temurin.17.JRE",
}


def java_problem() -> str | None:
    """What is wrong with this machine's Java, with the remedy; ``None`` when Spark can run on it."""
    java = _find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        if home:
            return f"JAVA_HOME is {home}, but there is no bin/java in it.\n{_remedy()}"
        return f"Java was not found.\n{_remedy()}"
    major = _major_version(java)
    if major is None:
        return f"{java} does not run as a Java.\n{_remedy()}"
    if major not in SUPPORTED:
        return f"{java} is Java {major}, which Spark 4.1 is not meant for.\n{_remedy()}"
    return None


def java_version() -> str | None:
    """Which Java there is, and where; ``None`` if there is none."""
    java = _find_java()
    return None if java is None else f"{_major_version(java)} at {java}"


def _remedy() -> str:
    here = _INSTALL.get(sys.platform)
    ways = [here] if here else list(_INSTALL.values())
    elsewhere = "Elsewhere: https://adoptium.net/temurin/releases (then set JAVA_HOME)"
    lines = ["Spark needs Java 17 or 21. Install one:", *ways, elsewhere]
    return "\n  ".join(lines)


def _find_java() -> Path | None:
    """The java that Spark's launch script will take: JAVA_HOME first, then the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    return Path(found) if found else None


def _major_version(java: Path) -> int | None:
    # A JDK says its version in a file; asking the program itself costs a tenth of a second at each start.
    try:
        release = (java.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    return major_version_in(release) or major_version_in(_ask(java))


def _ask(java: Path) -> str:
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def major_version_in(text: str) -> int | None:
    """The major version in the output of ``java -version`` or in a JDK's release file.

    >>> major_version_in('openjdk version "17.0.15" 2025-04-15')
    17
    >>> major_version_in('JAVA_VERSION="1.8.0_292"')
    8
    """
    found = re.search(r'version[ =]"(?:1\.)?(\d+)', text, re.IGNORECASE)
    return int(found.group(1)) if found else None


def main() -> int:
    """Say what is wrong, if anything; the Makefile asks before it starts Spark."""
    problem = java_problem()
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
