"""The entry of the `tidemill` command: also the first moments, while it is still loading, can be interrupted."""

import sys


def main() -> None:
    try:
        from tidemill.cli.main import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
