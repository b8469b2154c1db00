"""The main job from nothing: a CSV of a million rows becomes a certified model, predictions and a picture.

Friedman's function #1 (Friedman 1991), ``y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + noise`` on ten
uniform features, of which five matter, with noise of deviation 1: no model can have a smaller error than 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import zarr
from rich.console import Console
from rich.progress import track
from rich.table import Table

from streamkernel.models import RidgeModel
from streamkernel.report import draw_png

ROOT = Path(__file__).resolve().parent.parent
BLOCK = 50_000
NOISE = 1.0
console = Console(highlight=False)


def noise_free(X: Any) -> Any:
    """Friedman's function (m,) of the rows X (m, 10)."""
    return 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]


def write_csv(path: Path, rows: int) -> None:
    """Stream the rows to disk, a block at a time."""
    names = [*(f"x{j + 1}" for j in range(10)), "y"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for start in track(range(0, rows, BLOCK), f"writing {path.name}", console=console, transient=True):
            generator = np.random.Generator(np.random.Philox(key=start))
            X = generator.random((min(BLOCK, rows - start), 10))
            y = noise_free(X) + NOISE * generator.standard_normal(len(X))
            columns = [*X.T.astype(np.float32), y.astype(np.float32)]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the command line as a user would, show it, and read its JSON."""
    console.print(f"[bold]$ streamkernel {shlex.join(arguments)}[/bold]", soft_wrap=True)
    command = [sys.executable, "-m", "streamkernel", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], prog="scripts/demo")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--basis", type=int, default=1_000)
    parser.add_argument("--memory", default="2.5GB")
    parser.add_argument("--folder", type=Path, default=ROOT / "demo", help="where everything is written")
    options = parser.parse_args()
    began = time.perf_counter()
    folder: Path = options.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    write_csv(folder / "friedman.csv", options.rows)
    train = options.rows * 9 // 10
    held_out = f"{train}:{options.rows}"
    table = run(folder, "ingest", "friedman.csv", "friedman.zarr", "--target", "y", "--shuffle")
    fit = run(
        folder, "fit", "friedman.zarr", "model.zarr",
        "--basis", str(options.basis), "--rows", f"0:{train}", "--memory", options.memory,
    )  # fmt: skip
    scores = run(folder, "evaluate", "model.zarr", "friedman.zarr", "--rows", held_out)
    predicted = run(folder, "predict", "model.zarr", "friedman.zarr", "predictions.zarr", "--rows", held_out)
    run(folder, "report", "model.zarr", "report.html")
    picture(folder)

    X = zarr.open_array(folder / "friedman.zarr", path="X", mode="r")[train : options.rows]
    values = zarr.open_array(folder / "predictions.zarr", path="prediction", mode="r")[:]
    excess = float(np.sqrt(np.mean((np.ravel(values) - noise_free(np.asarray(X, dtype=np.float64))) ** 2)))
    rows = {
        "rows ingested, and the seconds it took": f"{table['rows']:,} in {table['seconds']:.1f} s",
        "rows of the fit, basis functions": f"{fit['rows']:,}, {fit['basis_size']:,}",
        "sweeps over the rows": f"{fit['sweeps']}",
        "seconds of the fit": f"{fit['seconds']:.1f}",
        "memory promised, measured (all processes)": f"{fit['planned_memory_bytes'] / 1e9:.2f} GB, "
        f"{fit['peak_memory_bytes'] / 1e9:.2f} GB",
        "residual trace, share of the trace (exact)": f"{fit['relative_residual_trace']:.2e}",
        "error on held-out rows (root mean square)": f"{scores['rmse']:.4f}",
        "the noise, below which no model can come": f"{NOISE:.4f}",
        "error against the noise-free function": f"{excess:.4f}",
        "predictions written": f"{predicted['rows']:,} in {predicted['seconds']:.1f} s",
        "seconds in all": f"{time.perf_counter() - began:.0f}",
    }
    summary = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        summary.add_row(name, value)
    console.print()
    console.print(summary)
    console.print(f"\nreport: {folder / 'report.html'}\npicture: {folder / 'report.png'}", soft_wrap=True)


def picture(folder: Path) -> None:
    """The README's picture."""
    draw_png(RidgeModel.load(folder / "model.zarr"), folder / "report.png")


if __name__ == "__main__":
    main()
