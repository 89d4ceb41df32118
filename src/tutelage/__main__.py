"""`python -m tutelage`, the same as `tutelage`."""

import sys

from tutelage.cli import main

sys.exit(main())
