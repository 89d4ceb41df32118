"""The numbers behind a figure or a table, as a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Data:
    """Rows under named columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def csv(self) -> str:
        """The text of the file; numbers with six digits, NaN as an empty cell."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(x) for x in row] for row in self.rows)
        return file.getvalue()


def _cell(x: object) -> object:
    if isinstance(x, float | np.floating):
        return "" if math.isnan(x) else f"{x:.6g}"
    return x
