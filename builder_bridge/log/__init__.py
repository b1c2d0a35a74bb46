"""Read Gradle console logs: lines, problems, digest. Nothing here does I/O."""
