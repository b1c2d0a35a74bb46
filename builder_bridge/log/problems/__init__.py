"""One file of matchers for each tool that speaks in a build log."""
