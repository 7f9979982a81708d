"""The rack's page: plain files, served as they are; nothing is built and nothing comes from elsewhere.

for path, (file, media_type) in FILES.items(): serve(path, file.read_bytes(), media_type, HEADERS)
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent

# Address -> file and its media type. None of them wants a token: they hold nothing of the rack.
FILES: dict[str, tuple[Path, str]] = {
    "/": (_HERE / "index.html", "text/html; charset=utf-8"),
    "/web/rack.css": (_HERE / "rack.css", "text/css; charset=utf-8"),
    **{
        f"/web/{name}.js": (_HERE / f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("rack", "charts", "words")
    },
}

# The page runs our own scripts and asks our own broker, whatever a device or a job calls itself.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
