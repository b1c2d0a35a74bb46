"""Sentences of failure blocks that are no causes: those that point elsewhere, and those that only wrap."""

from builder_bridge.log.problem import Tool

ANY_TOOL = frozenset(Tool) - {Tool.GRADLE}
_COMPILERS = frozenset({Tool.KOTLINC, Tool.KSP, Tool.KAPT, Tool.JAVAC})

POINTERS: tuple[tuple[frozenset[Tool], str], ...] = (
    (_COMPILERS, r"(?:Compilation|Internal compiler) error\. See log|Compilation failed; see the compiler"),
    (
        _COMPILERS,
        (
            r"KSP failed with exit code|Error\(s\) occurred"
            r"|.*while (?:processing annotations|annotation processing)"
        ),
    ),
    (_COMPILERS, r"[\w.$]+(?:Exception|Error)? ?\(no error message\)|Compilation finished with errors"),
    (_COMPILERS, r"Script compilation errors?:?"),
    (
        frozenset({Tool.D8, Tool.R8}),
        (
            r"Error while dexing|Compilation failed to complete|Error while merging dex archives"
            r"|Error while generating the main dex list|Failed to process .*\.(?:jar|class|dex)$"
        ),
    ),
    (
        frozenset({Tool.AAPT2}),
        (
            r"Android resource (?:linking|compilation) failed|Resource compilation failed"
            r"|Failed to process resources|Failed to execute aapt|.*see aapt output above"
        ),
    ),
    (frozenset({Tool.MANIFEST}), r"Manifest merger failed with multiple errors"),
    (frozenset({Tool.TEST}), r"There were failing tests"),
    (frozenset({Tool.LINT}), r"Lint found (?:fatal )?errors"),
    (
        frozenset({Tool.CLANG, Tool.CMAKE}),
        (
            r"(?:\[CXX\d+\] )?error when building with|Build command failed"
            r"|ninja: |C\+\+ build system|Error while executing process|executing external native build"
        ),
    ),
    (
        ANY_TOOL,
        (
            r".*[Ss]ee (?:the )?(?:log|logs|output|messages?|errors?|console)\b"
            r".*(?:above|below|for (?:more )?details)"
        ),
    ),
)

WRAPPER_WORDS = (
    "Execution failed for task ",
    "A failure occurred while executing ",
    "There was a failure while executing work items",
    "Multiple task action failures occurred",
    "Could not resolve all ",
    "A problem occurred configuring ",
    "A problem occurred evaluating ",
    "Could not determine the dependencies of ",
    "Multiple build operations failed",
    "Failed to transform ",
)
"""These sentences only say where a cause was found."""

CUT_WORDS = (
    *WRAPPER_WORDS,
    "Compilation error. See log for more details",
    "Internal compiler error. See log for more details",
    "Compilation failed; see the compiler",
    "Compilation failed to complete",
    "Android resource linking failed",
    "Android resource compilation failed",
    "Failed to process resources, see aapt output above",
    "Error while dexing.",
    "Error while merging dex archives",
    "KSP failed with exit code",
    "There were failing tests",
    "Lint found errors",
    "Lint found fatal errors",
    "Manifest merger failed with multiple errors, see logs",
    "Compilation finished with errors",
    "Script compilation error",
    "Could not compile build file '",
    "Could not compile settings file '",
    "Could not compile initialization script '",
    "Invalid TOML catalog definition",
    "java.lang.reflect.InvocationTargetException (no error message)",
    "ninja: Entering directory",
    "AAPT2 ",
)
"""A log that ends within one of these ends before it gives a cause."""

HEADINGS_OF_DETAILS = ("Android resource linking failed", "Android resource compilation failed")
"""Of a block that is cut below one of these nothing is known yet."""
