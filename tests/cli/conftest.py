"""The command line, run in this process as the console script runs it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from regard.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def regard(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in arguments])
        said = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), said.out, said.err)

    return run
