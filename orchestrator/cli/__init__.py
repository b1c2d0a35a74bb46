"""The `pocketbuild` command, one file for each group of commands."""
