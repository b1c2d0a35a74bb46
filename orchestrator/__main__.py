"""Lets `python -m orchestrator` be the `pocketbuild` command."""

from orchestrator.cli.main import main

if __name__ == "__main__":
    main()
