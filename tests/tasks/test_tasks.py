"""Each task learns a thing that a person can check, and answers right."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import torch

from regard import InputError
from regard.tasks import config
from regard.tasks.catalogue import TASKS, prepare, resolved
from regard.tasks.config import Model
from regard.tasks.task import Options, loss_of
from regard.tasks.tokenizers import EOS
from tests.tasks.small import run_of, same, train, weights

QUICK = {
    "optim__lr": 1e-2, "optim__dropout": 0.0, "optim__label_smoothing": 0.0, "model__d": 32,
    "data__tokens": 512, "schedule__steps": 80, "schedule__evaluate": 80,
}  # fmt: skip

LONGER = {  # what is hidden anew each time takes longer to learn
    "denoise": {"schedule__steps": 200, "data__mask": 0.1, "model__kind": "transformer"},
    "fill": {"schedule__steps": 120},
}

NOUNS, SEE = ("dog", "cat", "saw", "bird"), ("saw", "chased", "likes")
COUNT = "one two three four five six seven eight nine ten".split()  # noqa: SIM905
DRINKS = {"cat": "milk", "man": "beer", "car": "oil", "rose": "water"}


def conllu(words: list[tuple[str, str]]) -> str:
    return "".join(f"{i}\t{w}\t_\t{t}" + "\t_" * 6 + "\n" for i, (w, t) in enumerate(words, 1)) + "\n"


def sentences() -> list[list[tuple[str, str]]]:
    return [
        [("the", "DET"), (a, "NOUN"), (v, "VERB"), ("the", "DET"), (b, "NOUN")]
        for a, v, b in itertools.product(NOUNS, SEE, NOUNS)
    ]


TEXTS = {
    "tag": "".join(map(conllu, sentences())),
    "classify": "".join(
        f"{'good' if (word == 'great') != (negated != '') else 'bad'}\tthe {thing} is {negated}{word}\n"
        for thing in ("film", "book", "play", "song")
        for word in ("great", "awful")
        for negated in ("", "not ")
    ),
    "translate": "".join(
        f"<2{to}> {a} {b}\t{b + ' ' + a if to == 'swap' else a.upper() + ' ' + b.upper()}\n"
        for to in ("swap", "upper")
        for a in "abcd"
        for b in "abcd"
    ),
    "fill": "".join(f"the {who} wants {what} today\nno {what} for the {who}\n" for who, what in DRINKS.items()) * 8,
    "denoise": "".join(f"we count {' '.join(COUNT[i : i + 4])} now\n" for i in range(6)),
    "generate": "".join(f"{' '.join(COUNT[i : i + 5])}\n" for i in range(6)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    for task, text in TEXTS.items():
        (folder / task).with_suffix(".txt").write_text(text)
    return folder


@pytest.fixture(scope="module")
def learned(folder):
    """A trained model of a task, made once."""
    made = {}

    def of(task: str):
        if task not in made:
            run = run_of(task, folder / f"{task}.txt", **{**QUICK, **LONGER.get(task, {})})
            made[task] = train(run, folder / f"{task}-run")
        return made[task]

    return of


# What they learn


def test_tagging_by_what_stands_before(learned):
    answer = learned("tag")("the saw saw the bird")
    assert [(word, tag) for word, tag, _ in answer.words] == [
        ("the", "DET"), ("saw", "NOUN"), ("saw", "VERB"), ("the", "DET"), ("bird", "NOUN"),
    ]  # fmt: skip
    assert answer.output == "the/DET saw/NOUN saw/VERB the/DET bird/NOUN"
    assert answer.confidence > 0.9
    assert answer.unknown == ()


def test_classification_with_negation(learned):
    good, bad, neither = learned("classify")(["the song is great", "the song is not great", "the song is not awful"])
    assert (good.output, bad.output, neither.output) == ("good", "bad", "good")
    assert good.confidence > 0.9
    assert good.others == (("bad", pytest.approx(1 - good.confidence, abs=1e-6)),)


def test_translation_into_two_languages(learned):
    model = learned("translate")
    assert [model("a b", to="swap").output, model("a b", to="upper").output] == ["b a", "A B"]
    assert model("<2swap> c d").output == "d c"  # the tag may stand in the text, too
    n_best = model("a b", to="swap", n_best=3)
    assert len(n_best.others) == 2
    assert n_best.confidence >= n_best.others[0][1] >= n_best.others[1][1]


def test_a_language_that_the_model_does_not_know(learned):
    with pytest.raises(InputError, match=r"--to swop: unknown language; did you mean swap\? .* knows swap, upper"):
        learned("translate")("a b", to="swop")
    with pytest.raises(InputError, match="into which language"):
        learned("translate")("a b")


def test_the_word_behind_a_blank_from_both_sides(learned):
    model = learned("fill")
    for who, what in DRINKS.items():
        answer = model(f"the {who} wants ____ today")
        assert answer.output == f"the {who} wants {what} today"
        assert answer.blanks[0][0] == (what, pytest.approx(answer.confidence))
        assert model(f"no {what} for the __").output == f"no {what} for the {who}"
    two = model("the ____ wants milk ____")
    assert [candidates[0][0] for candidates in two.blanks] == ["cat", "today"]
    assert two.confidence == pytest.approx(two.blanks[0][0][1] * two.blanks[1][0][1])


def test_denoising_what_is_hidden_missing_or_swapped(learned):
    model = learned("denoise")
    whole = "we count three four five six now"
    for damaged in (whole, "we count three ____ five six now", "we count three four six five now"):
        assert model(damaged).output == whole


def test_counting_on(learned):
    model = learned("generate")
    assert model("one two", beam=1).output == "one two three four five"
    figures = model.task.score(
        model.network, list(model.task.read([str(model.path.parent / "generate.txt")])), Options()
    )
    # Each line begins with one of six words, then it is certain, but the end: 6 choices in 6 pieces.
    assert figures["perplexity"] == pytest.approx(6 ** (1 / 6), rel=0.1)


# How they answer

ASKED = {
    "tag": ["the dog saw", "the", "", "bird likes the bird saw", "qwx the"],
    "classify": ["the song is great", "", "awful", "the the the the"],
    "translate": ["<2swap> a b", "", "<2upper> c", "<2swap> d a"],
    "fill": ["the ____ wants milk", "____", "no ____ for ____"],
    "denoise": ["we count one two", "", "now now", "____ count three"],
    "generate": ["one", "", "seven eight nine", "five six"],
}


@pytest.mark.parametrize("task", TASKS)
def test_answers_come_in_order_and_alone_as_together(learned, task):
    model = learned(task)
    together = model(ASKED[task])
    assert [answer.text for answer in together] == ASKED[task]
    for text, answer in zip(ASKED[task], together, strict=True):
        alone = model(text)
        assert (alone.output, alone.unknown, alone.cut) == (answer.output, answer.unknown, answer.cut)
        assert alone.confidence == pytest.approx(answer.confidence, abs=1e-5)


@pytest.mark.parametrize("options", [Options(beam=1), Options(), Options(temperature=1.0, seed=3)], ids=str)
@pytest.mark.parametrize("task", ["translate", "denoise"])
def test_who_never_ends_writes_no_more_in_longer_company(folder, task, options):
    made, _ = ready(folder, task, "rnn")
    made.longest = 64
    torch.manual_seed(0)
    network = made.network().double()
    network.word.bias.data[EOS] = -100
    texts = [ASKED[task][0], " ".join(ASKED[task])]
    together = [answer.target for answer in made.answer(network, texts, options)]
    assert together == [made.answer(network, [text], options)[0].target for text in texts]
    assert len(together[0]) < len(together[1])


@pytest.mark.parametrize("task", TASKS)
def test_a_text_that_is_longer_than_the_model_reads(learned, task):
    model = learned(task)
    word = {"tag": "the", "translate": "a", "fill": "____"}.get(task, "count")
    text = {"translate": "<2swap> "}.get(task, "") + " ".join([word] * 5000)
    answer = model(text)
    if task == "tag":  # part by part
        assert len(answer.words) == 5000
        assert not answer.cut
    else:
        assert answer.cut


@pytest.mark.parametrize("task", ["translate", "denoise", "generate"])
def test_what_is_drawn_is_that_of_the_seed(learned, task):
    model, text = learned(task), ASKED[task][0]
    drawn = [model(text, temperature=3.0, seed=seed).output for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1


def test_what_training_never_saw_is_named(learned):
    assert learned("tag")("the zebra saw the Zulu").unknown == ("zebra", "Zulu")
    assert learned("classify")("the zebra").unknown == ("zebra",)
    assert learned("fill")("the zebra ____").unknown == ("zebra",)


def test_a_text_without_a_blank(learned):
    with pytest.raises(InputError, match="'the cat' has no blank; write ____ where a word is missing"):
        learned("fill")("the cat")


@pytest.mark.parametrize("task", TASKS)
def test_what_it_looked_at_is_named_and_sums_to_one(learned, task):
    model = learned(task)
    shown = model.attended(model(ASKED[task][0]))
    assert shown
    for each in shown:
        assert each.weights.shape == (len(each.rows), len(each.columns))
        assert (each.weights >= 0).all()
        total = each.weights.sum(-1) + (0 if each.removed is None else each.removed)
        torch.testing.assert_close(total, torch.ones(len(each.rows)))


def test_the_blank_looks_at_who_decides_it(learned):
    model = learned("fill")
    shown = model.attended(model("the cat wants ____ today"))[0]
    assert shown.rows == ("milk",)
    assert shown.columns == ("the", "cat", "wants", "____", "today")


# Every kind of network

KINDS = get_args(get_args(get_type_hints(Model)["kind"])[0])
CHOICES = {
    "tag": ("transformer", "rnn"),
    "classify": ("transformer", "rnn", "attentive"),
    "translate": ("transformer", "rnn", "attentive"),
    "fill": ("transformer", "rnn"),
    "denoise": ("autoencoder", "transformer", "rnn", "attentive"),
    "generate": ("transformer",),
}
SHAPES = [
    {},
    {"cell": "lstm", "bidirectional": False, "position": "rotary", "tied": False},
    {"cell": "rnn", "position": "learned", "score": "bilinear", "normalizer": "sparsemax"},
    {"position": "alibi", "normalizer": "entmax:1.5", "score": "additive:7"},
]


def ready(folder: Path, task: str, kind: str, **shape):
    run = resolved(run_of(task, folder / f"{task}.txt"))
    run = replace(run, model=replace(run.model, kind=kind, **shape))
    made, _ = prepare(run)
    items = [made.encode(example) for example in itertools.islice(made.read(run.data.train), 7)]
    return made, items


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize(("task", "kind"), [(task, kind) for task, kinds in CHOICES.items() for kind in kinds])
def test_every_parameter_learns(folder, task, kind, shape):
    """One without a gradient would be dead weight, and DDP would wait for it."""
    made, items = ready(folder, task, kind, **SHAPES[shape])
    torch.manual_seed(0)
    network = made.network(dropout=0.1)
    batch = made.collate(items, 1)
    loss = made.loss(network, batch, 0.1)
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert [name for name, p in network.named_parameters() if p.grad is None] == []
    assert all(p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize(("task", "kind"), [(task, kind) for task, kinds in CHOICES.items() for kind in kinds])
def test_what_is_lost_is_what_the_logits_lose(folder, task, kind):
    made, items = ready(folder, task, kind)
    torch.manual_seed(0)
    network, batch = made.network().double(), made.collate(items, 1)
    right, found = loss_of(*made.logits(network, batch), 0.1), made.loss(network, batch, 0.1)
    torch.testing.assert_close(found, right)
    learned = list(network.parameters())
    expected = torch.autograd.grad(right, learned)
    for one, other in zip(torch.autograd.grad(found, learned), expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("task", "kind"), [(task, kind) for task, kinds in CHOICES.items() for kind in kinds])
def test_padding_changes_nothing(folder, task, kind):
    made, _ = ready(folder, task, kind)
    items = [made.encode(example) for example in made.read([str(folder / f"{task}.txt")])]
    items = sorted(items, key=len)[:1] + sorted(items, key=len)[-1:]
    torch.manual_seed(0)
    network = made.network().double().eval()
    if task in ("fill", "denoise"):  # whose noise is drawn for the batch as a whole
        made.noise = 0.0
    with torch.no_grad():
        together = loss_of(*made.logits(network, made.collate(items, 5)))
        alone = [loss_of(*made.logits(network, made.collate([item], 5))) for item in items]
    if task == "fill":  # where at least one word is hidden, another one alone than in a batch
        assert together.isfinite()
    else:
        assert float(together) == pytest.approx(float(sum(alone)), rel=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_a_kind_that_cannot_do_it(folder, task):
    for kind in set(KINDS) - set(CHOICES[task]):
        made, _ = ready(folder, task, kind)
        verb = "translate" if task == "denoise" else task
        with pytest.raises(
            InputError, match=rf"model\.kind='{kind}' cannot {verb}; expected one of '{CHOICES[task][0]}'"
        ):
            made.network()


def test_heads_that_do_not_divide_the_width(folder):
    made, _ = ready(folder, "tag", "transformer", heads=3)
    with pytest.raises(InputError, match=r"model\.d=16 does not divide into model\.heads=3"):
        made.network()


# With vectors that someone else trained


@pytest.mark.parametrize("width", [16, 5])
@pytest.mark.parametrize("frozen", [True, False])
def test_pretrained_vectors_reach_words_that_training_never_saw(folder, width, frozen):
    chance = torch.Generator().manual_seed(3)
    animal, verb, the = (torch.randn(width, generator=chance) for _ in range(3))
    words = {"the": the, "wolf": animal, "hunts": verb}
    words |= {name: animal + 0.01 for name in NOUNS if name != "saw"} | {name: verb + 0.01 for name in SEE[1:]}
    path = folder / f"vectors{width}.txt"
    path.write_text("".join(f"{word} {' '.join(f'{x:.4f}' for x in v.tolist())}\n" for word, v in words.items()))
    keys = {**QUICK, "model__d": 16, "data__vectors": [str(path)], "data__frozen": frozen}
    run = run_of("tag", folder / "tag.txt", **keys)
    out = folder / f"vectors{width}{frozen}"
    model = train(run, out)
    answer = model("the wolf hunts the wolf")
    assert [tag for _, tag, _ in answer.words] == ["DET", "NOUN", "VERB", "DET", "NOUN"]
    assert answer.unknown == ()
    embedding = model.network.reader.inner.words.own
    table = getattr(embedding, "vectors", embedding).weight
    wolf = table[model.task.tokenizer.encode("wolf").ids[0]]
    assert torch.allclose(wolf, animal, atol=1e-3 if frozen else 0.02)  # weight decay reaches it, nothing else
    assert config.read(out / "run.toml").data.tokenizer == "word"


def test_tasks_that_write_do_not_read_by_vectors(folder):
    with pytest.raises(InputError, match="translate does not read by vectors; tag, classify, fill do"):
        train(run_of("translate", folder / "translate.txt", data__vectors=["v.txt"]), folder / "none")


@pytest.mark.parametrize("width", [16, 3])
def test_the_seed_decides_what_stands_for_a_word_without_a_vector(tmp_path, width):
    (tmp_path / "data").write_text("x\ta b\ny\tb c d\n" * 9)
    (tmp_path / "vectors").write_text("".join(f"{word} {' '.join(['0.5'] * width)}\n" for word in "ab"))
    run = run_of("classify", tmp_path / "data", data__vectors=[str(tmp_path / "vectors")], schedule__steps=3)
    for name in "ab":
        torch.rand(5)  # whatever was drawn before
        train(run, tmp_path / name)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
