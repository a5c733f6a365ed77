"""`python -m nodectl` is the command `nodectl`."""

from __future__ import annotations

from nodectl.cli.main import main

if __name__ == "__main__":
    main()
