"""Who may use a route. A route that does not say so does not start (`application`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request

from dalenius.app.http.service import Caller
from dalenius.errors import AuthDeniedError
from dalenius.ledger.tokens import Role

MARK = "dalenius_roles"


def allow(*roles: Role) -> Any:
    """A dependency: the caller, whose token must have one of these roles."""

    async def caller(request: Request) -> Caller:
        found = Caller(request.scope["state"]["token"], request.app.state.service)
        if found.token.role not in roles:
            raise AuthDeniedError(
                "This token is not for this.",
                why=f"It is for role {' or '.join(roles)}; this one is for {found.token.role.value}.",
                fix="Use another token.",
            )
        return found

    setattr(caller, MARK, roles)
    return Depends(caller)


def allowed(call: Callable[..., Awaitable[Any]] | None) -> tuple[Role, ...] | None:
    """The roles of a dependency that `allow` made."""
    return getattr(call, MARK, None)


ByAnalyst = Annotated[Caller, allow(Role.ANALYST)]
ByOwner = Annotated[Caller, allow(Role.OWNER)]
ByAuditor = Annotated[Caller, allow(Role.OWNER, Role.AUDITOR)]  # who may see everything
ByAnyone = Annotated[Caller, allow(*Role)]
