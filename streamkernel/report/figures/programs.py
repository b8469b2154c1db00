"""Linear programming machines: functions and rows of their programs against sweeps."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.programs import ProgramPath
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import with_headroom
from streamkernel.report.figures.palette import BLUE, ORANGE
from streamkernel.report.text import count, plural


@plot.drawing("program", "Functions")
def program_figure(path: ProgramPath) -> plot.Figure:
    """The number of functions against sweeps, of all programs together; the pointer meets the rows in memory."""
    longest = max(map(len, path.functions))
    functions, rows = (
        np.sum([np.pad(each, (0, longest - len(each)), mode="edge") for each in arrays], axis=0)
        for arrays in (path.functions, path.rows)
    )
    sweeps = np.arange(1, longest + 1)
    several = len(path.names) > 1
    whom = f"{count(len(path.names))} programs together, one for each function, have" if several else "program has"
    of = "all rows" if path.candidates is None else f"{count(path.candidates)} rows that were drawn"
    caption = (
        f"Coefficients that are not 0 after each sweep; the candidates are {of}. The {whom} "
        f"{count(int(rows[-1]))} rows in memory at the end."
    )
    line = plot.Line(
        sweeps,
        functions,
        BLUE,
        rings=7.0,
        hover=[("functions", functions, "0,0"), ("rows in memory", rows, "0,0")],
    )
    reach = 0.04 * longest
    x = plot.Axis("Sweep", (1.0 - reach, longest + reach), whole=True)
    y = plot.Axis("Functions", with_headroom(0.0, float(max(functions.max(), 1))), whole=True)
    series: list[plot.Series] = [line, plot.dot(float(longest), float(functions[-1]))]
    keys: list[plot.Key] = [
        (BLUE, "line", "after each sweep"),
        (ORANGE, "dot", f"at the end: {count(int(functions[-1]))}"),
    ]
    summary = f"{count(int(functions[-1]))} functions after {plural(longest, 'sweep')}"
    return plot.Figure(caption, x, y, series, keys, height=300, summary=summary)
