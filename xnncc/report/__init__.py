"""What was built, for a person (report.html) and for a machine (report.json)."""

from __future__ import annotations

from xnncc.report.data import FileSize, ReportData, document
from xnncc.report.write import write

__all__ = ["FileSize", "ReportData", "document", "write"]
