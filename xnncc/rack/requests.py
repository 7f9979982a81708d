"""What clients may send, each field with its bounds, and how it is read: never more bytes than allowed."""

from __future__ import annotations

import json
import secrets
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.requests import Request

from xnncc.errors import BadInput, XnnccError
from xnncc.rack.leases import MOST_SECONDS
from xnncc.rack.tokens import Who

SMALL, LARGE = 64 << 10, 8 << 20  # bytes of a body
_MOST_ARGUMENTS = 64 << 10

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Given = TypeVar("Given", bound=BaseModel)


class Problem(Exception):
    """An answer that is no success: its HTTP status and the sentence."""

    def __init__(self, status: int, error: XnnccError) -> None:
        super().__init__(str(error))
        self.status, self.error = status, error


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, cache_strings="none")


class DeviceIn(_Strict):
    """POST /v1/devices. ``token``: a tcp agent's own."""

    spec: Word
    token: Annotated[str, Field(max_length=1000)] = ""
    name: Annotated[str, Field(max_length=64)] = ""
    may_reboot: bool = False
    is_steady: bool = True


class ReasonIn(_Strict):
    """POST /v1/devices/{serial}/quarantine."""

    reason: Annotated[str, Field(max_length=300)] = ""


class JobIn(_Strict):
    """POST /v1/jobs. ``token``: the same one gives the same job again."""

    name: Word
    key: Word
    priority: Annotated[int, Field(ge=-10, le=10)] = 0
    weight: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    max_seconds: Annotated[float, Field(gt=0, le=1e8)] | None = None
    max_devices: Annotated[int, Field(ge=1, le=1000)] | None = None
    token: Annotated[str, Field(min_length=1, max_length=128)] = Field(default_factory=lambda: secrets.token_hex(16))


class ProgressIn(_Strict):
    """PUT /v1/jobs/{job}/progress: what only the client knows. ``best``: the smaller, the better."""

    text: Annotated[str, Field(max_length=300)] = ""
    done: Annotated[int, Field(ge=0)] | None = None
    total: Annotated[int, Field(ge=0)] | None = None
    best: float | None = None
    unit: Annotated[str, Field(max_length=16)] = ""
    left_s: Annotated[float, Field(ge=0)] | None = None


class GroupIn(_Strict):
    """See device/bench.py's Group."""

    candidates: Annotated[list[Annotated[int, Field(ge=0, lt=1 << 20)]], Field(min_length=1, max_length=4096)]
    floats: Annotated[int, Field(ge=0, lt=1 << 32)]
    out_offset: Annotated[int, Field(ge=0, lt=1 << 40)]
    out_bytes: Annotated[int, Field(ge=0, lt=1 << 32)]


class BatchIn(_Strict):
    """POST /v1/jobs/{job}/batches: the fields of rack/phone.py's Batch. ``token``: the same one gives the same batch
    again. ``lease``: only on the device that is held by it."""

    token: Annotated[str, Field(min_length=1, max_length=128)]
    kind: Literal["measure", "run", "time", "trace"]
    target: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    files: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z0-9._-]{1,64}$")], Sha], Field(min_length=1, max_length=16)
    ]
    groups: Annotated[list[GroupIn], Field(max_length=10_000)] = []
    rounds: Annotated[int, Field(ge=0, le=100_000)] = 0
    threads: Annotated[int, Field(ge=0, le=256)] = 1
    core_mask: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    arguments: Annotated[dict[str, Any], Field(max_length=32)] = {}
    lease: Annotated[str, Field(max_length=64)] = ""

    @field_validator("arguments")
    @classmethod
    def _bounded(cls, value: dict[str, Any]) -> dict[str, Any]:
        if len(json.dumps(value)) > _MOST_ARGUMENTS:
            raise ValueError(f"more than {_MOST_ARGUMENTS} characters")
        return value


class LeaseIn(_Strict):
    """POST /v1/leases. ``token``: the same one gives the same lease again."""

    key: Word
    seconds: Annotated[float, Field(ge=1, le=MOST_SECONDS)] = 60.0
    token: Annotated[str, Field(min_length=1, max_length=128)] = Field(default_factory=lambda: secrets.token_hex(16))


class RenewIn(_Strict):
    """PUT /v1/leases/{lease}."""

    seconds: Annotated[float, Field(ge=1, le=MOST_SECONDS)] | None = None


class TokenIn(_Strict):
    """POST /v1/tokens."""

    name: Word
    role: Word


async def read(request: Request, model: type[Given], limit: int = SMALL) -> Given:
    """Return the body as ``model``; an empty one has only defaults. Raises: Problem (413, 422)."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > limit:
            raise Problem(413, BadInput("request", f"its body has more than {limit} bytes", "Send less at once."))
    try:
        return model.model_validate_json(bytes(data) or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "request"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise Problem(422, BadInput(f"'{where[:100]}'", f"{first['msg']}{more}", "See docs/rack.md.")) from None


def who_of(request: Request, role: str) -> Who:
    """Return who asks. Raises: Problem (403) when its role does not suffice."""
    who: Who | None = request.scope["state"]["who"]
    if who is None or not who.may(role):
        name = who.name if who else "nobody"
        have = f"'{name}' has the role '{who.role}'" if who else "it has no token"
        raise Problem(403, BadInput(f"token '{name}'", f"{have} and this needs '{role}'", "Ask an admin."))
    return who
