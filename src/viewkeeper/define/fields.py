"""What the models of project files are made of."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from viewkeeper.define.timing import read_interval
from viewkeeper.errors import SetupError

Name = Annotated[str, Field(min_length=1)]


class Strict(BaseModel):
    """A part of a project file: no other fields, no guessing at types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reference(Strict):
    """A value that is kept elsewhere, since it may be a secret: in an environment variable."""

    env: Name

    def resolve(self) -> str:
        """The value; raises ``VK-SETUP-SECRET`` naming the variable when it is not set."""
        value = os.environ.get(self.env)
        if not value:
            raise SetupError(
                f"the environment variable {self.env} is not set",
                code="VK-SETUP-SECRET",
                hint="viewkeeper.yml refers to it; set it before you run viewkeeper.",
            )
        return value


def _seconds(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError("write numbers and units, such as '5 minutes'")
    return read_interval(value)


Interval = Annotated[int, BeforeValidator(_seconds)]
"""An interval as people write it, in seconds."""
