"""How far two right answers may be apart: the one place where the numbers and their reasons stand."""

from __future__ import annotations

# Of an output's largest value, float32. Both sides round at 6e-8 an operation and sum in different orders; over
# thousand-term sums and a hundred layers that grows to 1e-7 .. 3e-5 on the twelve real networks (Winograd included),
# while a wrong pad, axis or stale buffer shows as 1e-3 or more.
TOLERANCE = 1e-4

# Outputs are measured against at least this, so 1e-6 absolute is always allowed. onnxruntime's sigmoid is an
# approximation with an error of 1.2e-7 (version 1.32), which is half a percent of a probability map that holds nothing.
SMALLEST_SCALE = 1e-2
