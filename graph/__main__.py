"""`python -m graph` is `palimpsest`."""

import sys

from graph.cli import main

sys.exit(main())
