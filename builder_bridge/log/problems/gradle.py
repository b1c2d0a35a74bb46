"""What the shell, the JVM and Gradle's own launcher say on a line of their own."""

import re

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import Finding, Follow

MARKS = (
    r"Killed",
    r"signal 9",
    r"exit (?:code|status|value):? 137",
    r"Exception in thread \"main\"",
    r"Error occurred during initialization of",
    r"There is insufficient memory for the Java",
    r"Error: (?:Could not find or load|LinkageError|Unable to |A JNI error|Invalid or corrupt jarfile)",
    r"has been compiled by a more recent version of the Java Runtime",
)

_KILLED = re.compile(
    r"(?:[^\n]{0,200}?(?:sh|gradlew|\]|\d)[:+]? +)?Killed(?:: 9)?(?: {2,}[^\n]*| *\([^\n]*\) *| *)$"
    r"|[^\n]{0,300}?(?:\(signal 9\)|terminated by signal 9|killed by signal 9|SIGKILL)"
)
_LAUNCHER = re.compile(
    r"Exception in thread \"main\" |Error occurred during initialization of"
    r"|(?:# )?There is insufficient memory for the Java"
    r"|Error: (?:Could not find or load|LinkageError|Unable to |A JNI error|Invalid or corrupt jarfile)"
    r"|[^\n]{0,200}exit (?:code|status|value):? 137\b"
)


def match_killed(line: str) -> Finding | None:
    """See the shell's or the terminal's word that a process was killed."""
    if not _KILLED.match(line):
        return None
    return Finding(Severity.ERROR, Tool.GRADLE, line.strip(), follow=Follow.NOTHING)


def match_launcher(line: str) -> Finding | None:
    """See a fault before Gradle runs, or around it; it counts only where Gradle itself says nothing."""
    if not _LAUNCHER.match(line):
        return None
    return Finding(Severity.ERROR, Tool.GRADLE, line.strip().removeprefix("# "), follow=Follow.TEXT)
