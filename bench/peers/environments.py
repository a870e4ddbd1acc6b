"""An environment for each peer, made with pip on first use: versions are pinned, and none is ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# SmartNoise samples with ORDER BY RANDOM() in a window, which DuckDB 2.0 refuses. diffprivlib imports what newer
# versions of scikit-learn no longer have.
PINS: Mapping[str, tuple[str, ...]] = {
    "qrlew": ("pyqrlew==0.9.27", "duckdb==2.0.0", "numpy==1.26.4", "sqlalchemy==2.1.8"),
    "opendp_polars": ("opendp[polars]==0.16.0", "polars==1.36.1"),
    "smartnoise": ("smartnoise-sql==1.0.10", "opendp==0.14.2", "duckdb==1.5.6", "pandas==2.3.3"),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.6.1"),
    "pycanon": ("pycanon==1.3.6", "pandas==2.3.3"),
    # Seeds of 63 bits are an error since xxhash 4; scikit-learn and statsmodels are imported but not declared; its
    # sketch makes an array of shape None, which numpy 2 refuses.
    "pure_ldp": (
        "pure-ldp==1.2.0",
        "xxhash<4",
        "scikit-learn==1.6.1",
        "statsmodels<0.15",
        "pandas==2.3.3",
        "numpy==1.26.4",
    ),
    "multi_freq_ldpy": ("multi-freq-ldpy==0.2.5", "xxhash<4", "numpy==2.4.6"),
    "utility": ("scikit-learn==1.9.1", "numpy==2.4.6"),
    "mpyc": ("mpyc==0.11", "numpy==2.4.6", "gmpy2==2.2.1"),
    "opacus": ("torch==2.13.0", "opacus==1.6.0", "numpy==2.4.6"),
    "jax_privacy": ("jax-privacy==2.0.0", "jax==0.10.2", "numpy==2.4.6"),
    "pipeline_dp": ("pipeline-dp==0.3.1", "python-dp==1.1.5"),
}


def environment(name: str, cache: Path) -> Path:
    """The interpreter of a peer's own environment, made unless it is there with just these versions."""
    folder, pins = cache / f"env-{name}", "\n".join(PINS[name])
    python, marker = folder / "bin" / "python", folder / "pins.txt"
    if not (marker.is_file() and marker.read_text() == pins):
        print(f"installing {', '.join(PINS[name])}", file=sys.stderr, flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(folder)], 600)
        run([str(python), "-m", "pip", "install", "--quiet", *PINS[name]], 1800)
        marker.write_text(pins)
    return python


def run(command: Sequence[str], limit: float, shown: Mapping[str, str] | None = None) -> str:
    """What a command prints; raises if it fails or takes longer than ``limit`` seconds."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit, env=shown).stdout


def why(error: Exception) -> str:
    """The last thing that a failed command said."""
    said = getattr(error, "stderr", None) or str(error)
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))]
    return lines[-1][:200] if lines else type(error).__name__
