"""The entry of the `tidemill` command. Ctrl-C works from the start, while modules are still loading."""

import sys


def main() -> None:
    try:
        from tidemill.cli.main import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
