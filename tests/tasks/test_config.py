"""A configuration says what is wrong with it, and what is written comes back."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import InputError
from regard.tasks import config
from regard.tasks.config import Optim, Run, read, resolve, to_toml, write

SMALL = """
task = "tag"
[data]
train = ["a.conllu"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run.toml").write_text(SMALL)
    return tmp_path / "run.toml"


def test_what_is_not_said_is_the_default(path):
    run = read(path)
    assert run.task == "tag"
    assert run.data.train == ("a.conllu",)
    assert run.optim == Optim()


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("optim.lr=3e-4", 3e-4),
        ("optim.lr=1", 1.0),
        ("optim.warmup=0", 0),
        ("model.tied=false", False),
        ("model.tied=True", True),
        ("model.score=a = b", "a = b"),
        ("model.score=none", "none"),  # a text, which may be any
        ("optim.clip=none", None),
        ("optim.clip=0.5", 0.5),
        ("model.hidden=512", 512),
        ("optim.betas=0.9,0.99", (0.9, 0.99)),
        ("optim.betas=[0.9, 0]", (0.9, 0.0)),
        ("data.train=a.en,a.de", ("a.en", "a.de")),
        ('data.train=["a,b.en", "a.de"]', ("a,b.en", "a.de")),
        ("data.valid=", ()),
        ("optim.decay=linear", "linear"),
        ("seed=7", 7),
    ],
)
def test_every_key_on_the_command_line(path, override, expected):
    value = read(path, [override])
    for name in override.partition("=")[0].split("."):
        value = getattr(value, name)
    assert value == expected
    assert type(value) is type(expected)


def test_the_command_line_goes_over_the_file_and_the_last_one_counts(path):
    path.write_text(SMALL + "[optim]\nlr = 1\nwarmup = 5\n")
    run = read(path, ["optim.lr=2", "optim.lr=3"])
    assert (run.optim.lr, run.optim.warmup) == (3.0, 5)


def test_a_missing_key_may_come_from_the_command_line(path):
    path.write_text('[data]\ntrain = ["a"]')
    assert read(path, ["task=fill"]).task == "fill"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[optim]\nlrr = 1", r"run\.toml: optim\.lrr: unknown key; did you mean optim\.lr\? \[optim\] has: lr, warmup"),
        ("[optim]\nqwerty = 1", r"optim\.qwerty: unknown key; \[optim\] has: lr"),
        ("[optin]\nlr = 1", r"optin: unknown key; did you mean optim\? the top level has: task, data, seed"),
        ("[optim]\nlr = 'fast'", r"optim\.lr = 'fast': expected a number \(0 < value < inf\)"),
        ("[optim]\nlr = nan", r"optim\.lr = nan: expected"),
        ("[optim]\nlr = true", r"optim\.lr = True: expected a number"),
        ("[optim]\nlr = 1" + "0" * 400, r"optim\.lr = 10+\.\.\.: expected a number"),
        ("[optim]\nwarmup = 1.0", r"optim\.warmup = 1\.0: expected a whole number \(0 ≤ value ≤ 4,294,967,295\)"),
        ("[optim]\ndropout = 1", r"optim\.dropout = 1: expected a number \(0 ≤ value < 1\)"),
        ("[optim]\nbetas = [0.9]", r"optim\.betas = \[0\.9\]: expected a list of 2: a number"),
        ("[optim]\nbetas = [0.9, 2]", r"optim\.betas\[1\] = 2: expected a number"),
        ("[optim]\nclip = 'never'", r"optim\.clip = 'never': expected a number \(0 < value < inf\), or none"),
        ("[optim]\ndecay = 'liner'", r"'liner': expected one of 'cosine', .*; did you mean 'linear'\?"),
        ("[optim]\ndecay = ['x']", r"optim\.decay = \['x'\]: expected one of"),
        ("[model]\ntied = 1", r"model\.tied = 1: expected true or false"),
        ("[data]\ntrain = 'a.en'", r"data\.train = 'a\.en': expected a list of a text"),
        ("[data]\ntrain = [1]", r"data\.train\[0\] = 1: expected a text"),
        ("[data]\ntrain = []\n[model]\n[model.d]\n", r"model\.d = \{\}: expected a whole number"),
        ("model = 3", r"model is a section, not a value; its keys: kind, d, heads"),
        ("lr = 3", r"lr: unknown key; did you mean optim\.lr\?"),
        ("task = 'tag'", r"data\.train is missing; expected a list of a text, in the file or as data\.train=…"),
        ("[data]\ntrain = ['a']", r"task is missing; expected one of 'tag', 'classify'"),
        ("[optim", r"run\.toml: not TOML: Expected '\]'"),
        ("a = 1\na = 2\n", r"not TOML: .*line 2"),
        ("a = " + "[" * 100_000, r"not TOML"),
        ("", r"task is missing"),
    ],
)
def test_what_is_wrong_with_a_file(path, text, message):
    path.write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        read(path)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("optim.lr", r"command line: optim\.lr: expected section\.key=value, such as optim\.lr=3e-4"),
        ("optim.lrr=1", r"command line: optim\.lrr: unknown key; did you mean optim\.lr\?"),
        ("lr=1", r"command line: lr: unknown key; did you mean optim\.lr\?"),
        ("optim=1", r"command line: optim is a section, not a value; its keys: lr"),
        ("seed.x=1", r"command line: seed\.x: seed is a key, not a section"),
        ("=1", r"command line: : unknown key"),
        ("optim.lr=", r"optim\.lr = '': expected a number"),
        ("optim.lr=fast", r"command line: optim\.lr = 'fast': expected a number"),
        ("optim.warmup=1e3", r"optim\.warmup = '1e3': expected a whole number"),
        ("model.tied=1", r"model\.tied = '1': expected true or false"),
        ("optim.betas=[0.9", r"optim\.betas='\[0\.9': not a list as in TOML"),
        ("optim.betas=0.9,x", r"optim\.betas\[1\] = 'x': expected"),
        ("optim.betas=[0.9, 0.9]\nseed=3", r"optim\.betas\[0\] = '\[0\.9': expected"),
        ("task=teg", r"task = 'teg': expected one of .*; did you mean 'tag'\?"),
        ("data.train=\udcff.txt", r"data\.train\[0\] = '\\udcff\.txt': not Unicode; rename the file"),
    ],
)
def test_what_is_wrong_on_the_command_line(path, override, message):
    with pytest.raises(InputError, match=message) as raised:
        read(path, [override])
    assert "\n" not in str(raised.value)


def test_files_that_are_something_else(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: No such file or directory; expected a configuration in TOML"):
        read(tmp_path / "none.toml")
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path)
    (tmp_path / "latin").write_bytes(b"task = '\xe9'")
    with pytest.raises(InputError, match="latin: not UTF-8 at byte 8"):
        read(tmp_path / "latin")
    (tmp_path / "large").write_bytes(b"#" * (config.MOST + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read(tmp_path / "large")


# Round trip

FINITE = st.floats(allow_nan=False)


@dataclass(frozen=True)
class Inner:
    many: tuple[str, ...] = ()
    pair: tuple[int, float] = (1, 2.0)
    kind: Literal["a", "b\n"] = "a"
    maybe: float | None = 1.0
    other: int | None = None


@dataclass(frozen=True)
class Outer:
    text: str
    number: float
    flag: bool = False
    whole: int = 3
    inner: Inner = field(default_factory=Inner)
    deeper: Run = field(default_factory=lambda: resolve(Run, {"task": "tag", "data": {"train": ["x"]}}))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["\x7f\0\r\n", "none", "\u2028"]
)
inners = st.builds(
    Inner,
    many=st.lists(texts, max_size=3).map(tuple),
    pair=st.tuples(st.integers(), FINITE),
    kind=st.sampled_from(["a", "b\n"]),
    maybe=st.none() | FINITE,
    other=st.none() | st.integers(),
)
outers = st.builds(Outer, text=texts, number=FINITE, flag=st.booleans(), whole=st.integers(), inner=inners)


@given(outer=outers)
def test_what_is_written_is_read_again(tmp_path_factory, outer):
    path = tmp_path_factory.getbasetemp() / "round.toml"
    write(path, outer)
    assert repr(read(path, into=Outer)) == repr(outer)  # repr: -0.0, and 1 is not 1.0


@given(outer=outers)
def test_every_value_can_also_be_said_on_the_command_line(outer):
    given = [f"number={outer.number!r}", f"whole={outer.whole}", f"flag={outer.flag}", f"text={outer.text}"]
    given += [f"inner.pair={outer.inner.pair[0]},{outer.inner.pair[1]!r}", f"inner.maybe={outer.inner.maybe}"]
    given += [f"inner.many={config._text(outer.inner.many)}", f"inner.kind={outer.inner.kind}"]
    given += [f"inner.other={outer.inner.other}", "deeper.task=tag", "deeper.data.train=x"]
    assert repr(resolve(Outer, {}, given)) == repr(outer)


def test_the_resolved_file_is_complete_and_readable(path):
    text = to_toml(read(path, ["optim.clip=none"]))
    assert text.startswith('task = "tag"\nseed = 0\n\n[data]\ntrain = ["a.conllu"]\n')
    assert 'clip = "none"\n' in text
    assert "\n[checkpoint]\nevery = 500\nkeep = 3\n" in text


def test_writing_keeps_the_old_file_when_it_fails(path, tmp_path):
    with pytest.raises(InputError, match=r"No such file or directory; make the folder first"):
        write(tmp_path / "missing" / "run.toml", read(path))
    assert path.read_text() == SMALL


@given(noise=st.binary(max_size=60), at=st.integers(0, 2000), cut=st.booleans())
def test_a_mutated_file_is_read_or_refused(tmp_path_factory, noise, at, cut):
    path = tmp_path_factory.getbasetemp() / "mutated.toml"
    text = to_toml(resolve(Run, {"task": "tag", "data": {"train": ["x"]}})).encode()
    path.write_bytes(text[:at] + noise + (b"" if cut else text[at:]))
    said = f"{path}:"
    try:
        read(path)
    except InputError as error:
        said = str(error)
    assert said.startswith(f"{path}:")
    assert "\n" not in said


# The sections themselves


def test_the_defaults_are_values_that_would_be_accepted():
    run = resolve(Run, {"task": "tag", "data": {"train": ["x"]}})
    assert read_back(run) == run


def read_back(run: Run) -> Run:
    return resolve(Run, config.tomllib.loads(to_toml(run)))


def test_an_optional_key_is_never_a_text():
    """For a text "none" would have two meanings."""
    for section in dataclasses.fields(Run):
        hint = config._types(Run)[section.name]
        for each in config._types(hint).values() if dataclasses.is_dataclass(hint) else [hint]:
            kind, _, optional = config._bare(each)
            assert not (optional and (kind is str or "none" in get_args(kind)))


def test_a_range_in_words():
    assert str(config.Range(0, 1, open_high=True)) == "0 ≤ value < 1"
    assert str(config.Range(1)) == "1 ≤ value"
    assert 1.0 not in config.Range(0, 1, open_high=True)
    assert math.nan not in config.Range()
