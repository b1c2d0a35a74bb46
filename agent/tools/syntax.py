"""Find out whether a changed file still parses, before a phone spends a minute on saying so.

A file that the compiler takes must never be refused here, for that would be a lost build. So only sources
and resources that builds read are looked at; XML is parsed by expat, as aapt2 does, and Kotlin and Java are
checked for what does not close. Only faults that a change brought in count: what did not parse before is
left to the compiler. Groovy is left to Gradle: a slash begins a string or divides by rules that no short
check knows.
"""

import re
from pathlib import PurePosixPath
from xml.parsers import expat

from agent.tools.brackets import Language, unclosed

_PACKED_AS_IT_IS = re.compile(r"(^|/)(assets|resources|raw(-[^/]*)?)/")


def new_faults(name: str, before: bytes | None, after: bytes) -> list[str]:
    """Give what a change broke in a file, as lines for a model; empty where it still parses."""
    if before is not None and faults_of(name, before):
        return []
    return faults_of(name, after)


def faults_of(name: str, data: bytes) -> list[str]:
    """Give the place where a file does not parse; empty for what no build reads or is not checked."""
    path = PurePosixPath(name)
    if _PACKED_AS_IT_IS.search(name):
        return []
    match path.suffix:
        case ".xml" if path.name == "AndroidManifest.xml" or "res" in path.parts:
            return _xml(name, data)
        case ".java":
            told = unclosed(data.decode("utf-8", "replace"), Language.JAVA)
        case ".kt" | ".kts":
            told = unclosed(data.decode("utf-8", "replace"), Language.KOTLIN)
        case _:
            return []
    return [f"{name}:{told}"] if told else []


def _xml(name: str, data: bytes) -> list[str]:
    try:
        expat.ParserCreate().Parse(data, True)
    except expat.ExpatError as fault:
        return [f"{name}:{fault.lineno}:{fault.offset + 1}  {expat.ErrorString(fault.code)}"]
    except (LookupError, ValueError):  # an encoding that is not known here
        return []
    return []
