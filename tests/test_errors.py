"""One error for each mistake: it names the axis, what came, what was expected, and the cure."""

from collections.abc import Callable

import pytest
import torch

from regard import DeviceError, DTypeError, InputError, ShapeError, attention, explain, masks, normalizers, scores


def zeros(*shape: int, **kind: object) -> torch.Tensor:
    return torch.zeros(shape, **kind)


Q, K, V = zeros(2, 4, 5, 8), zeros(2, 4, 7, 8), zeros(2, 4, 7, 6)

SHAPES = {
    "widths": (
        lambda: attention(zeros(5, 64), zeros(7, 32), zeros(7, 6)),
        r"key has d_k=32, query has d_q=64: ScaledDot needs equal sizes; try Bilinear\(64, 32\)",
    ),
    "width of a score": (
        lambda: attention(Q, K, V, score=scores.Additive(9, 8, 3)),
        r"query has d_q=8, Additive was made for d_q=9",
    ),
    "a value for each key": (
        lambda: attention(Q, K, V[..., :6, :]),
        r"key has n_k=7, value has n_k=6: each key needs one value; cut or pad",
    ),
    "query of one axis": (
        lambda: attention(zeros(8), K, V),
        r"query has shape \(8,\); expected \[\*batch n_q d_q\], at least two axes; try query\[:, None\]",
    ),
    "key of one axis": (lambda: attention(Q, zeros(8), V), r"key has shape \(8,\); expected \[\*batch n_k d_k\]"),
    "value of one axis": (lambda: attention(Q, K, zeros(7)), r"value has shape \(7,\); expected \[\*batch n_k d_v\]"),
    "batch": (
        lambda: attention(Q, zeros(3, 4, 7, 8), V),
        r"leading axes do not broadcast: query \(2, 4\), key \(3, 4\), value \(2, 4\); every pair of sizes must be equal or 1",
    ),
    "batch of the values": (
        lambda: attention(Q, K, zeros(3, 4, 7, 6)),
        r"leading axes do not broadcast: .* value \(3, 4\)",
    ),
    "key heads": (
        lambda: attention(Q, K[:, :3], V[:, :3]),
        r"key has 3 heads \(axis -3\), query has 4: key heads must divide query heads; .* a divisor of 4",
    ),
    "more key heads": (lambda: attention(Q, zeros(2, 8, 7, 8), V), r"key has 8 heads \(axis -3\), query has 4"),
    "value heads": (lambda: attention(Q, K, V[:, :3]), r"value has 3 heads \(axis -3\), query has 4"),
    "heads of a score": (
        lambda: attention(Q, K, V, score=scores.Bilinear(8, 8, heads=2)),
        r"query has 4 heads \(axis -3\), the score was made for heads=2; .* use heads=4, or heads=None",
    ),
    "heads of a bias": (
        lambda: attention(Q, Q, Q, score=scores.Dot() + scores.Alibi(2)),
        r"query has 4 heads \(axis -3\), the score was made for heads=2",
    ),
    "heads of a normalizer": (
        lambda: attention(Q, K, V, normalizer=normalizers.Softmax(sink=True, heads=3)),
        r"query has 4 heads \(axis -3\), the normalizer was made for heads=3",
    ),
    "mask per head": (
        lambda: attention(Q, Q, Q, mask=masks.per_head([masks.causal()] * 3)),
        r"per_head: 3 masks for 4 heads \(axis -3 of query\); give one mask per head",
    ),
    "columns of a mask": (
        lambda: attention(Q, K, V, mask=zeros(5, 6).bool()),
        r"the mask has n_k=6, the attention has n_k=7; expected 7 or 1",
    ),
    "rows of a mask": (
        lambda: attention(Q, K, V, mask=zeros(4, 7).bool()),
        r"the mask has n_q=4, the attention has n_q=5; expected 5 or 1",
    ),
    "batch of a mask": (
        lambda: attention(Q, K, V, mask=zeros(3, 1, 5, 7).bool()),
        r"the mask has leading axes \(3, 1\), the attention has \(2, 4\); each must be equal or 1",
    ),
    "batch of a mask without heads": (
        lambda: attention(Q, K, V, mask=zeros(2, 5, 7).bool()),
        r"the mask has leading axes \(2,\), the attention has \(2, 4\); .* tensor\[:, None\]",
    ),
    "bias": (lambda: attention(Q, K, V, mask=zeros(5, 6)), r"\(5, 6\).*n_k"),
    "mask of one axis": (
        lambda: attention(Q, K, V, mask=zeros(7).bool()),
        r"mask has shape \(7,\); expected \[..., n_q, n_k\]; for lengths use padding\(lengths\)",
    ),
    "dense of one axis": (
        lambda: masks.dense(zeros(7).bool()),
        r"dense: the mask has shape \(7,\); expected \[..., n_q, n_k\]",
    ),
    "alignment": (
        lambda: attention(Q, K, V, mask=masks.causal()),
        r"causal: n_q=5, n_k=7: .* align='start' .* align='end'",
    ),
    "alignment of a bias": (
        lambda: attention(Q, K, V, score=scores.Dot() + scores.Alibi(4)),
        r"Alibi: n_q=5, n_k=7: .* align='start'",
    ),
    "lengths": (
        lambda: attention(Q, K, V, mask=masks.padding(torch.tensor([5, 5, 5]))),
        r"padding: axis 0 of lengths has size 3, the attention has 2 there .* expected 2 or 1",
    ),
    "document ids": (
        lambda: attention(Q, Q, Q, mask=masks.documents(torch.zeros(2, 6, dtype=torch.long))),
        r"documents: 6 ids for 5 positions; give one id per position",
    ),
    "own score": (
        lambda: attention(Q, K, V, score=lambda q, k: q),
        r"your score returned \(2, 4, 5, 8\); expected a tensor \[..., n_q=5, n_k=7\]",
    ),
}

TYPES = {
    "list": (
        lambda: attention([[1.0]], K, V),
        r"query is list; expected a tensor \[\*batch n_q d_q\]; try torch.as_tensor\(query\)",
    ),
    "no value": (lambda: attention(Q, K, None), r"value is NoneType; expected a tensor \[\*batch n_k d_v\]"),
    "whole numbers": (
        lambda: attention(Q.long(), K, V),
        r"query is torch.int64; expected a floating type such as float32; try query.float\(\)",
    ),
    "mixed types of key": (
        lambda: attention(Q, K.half(), V),
        r"key is torch.float16, query is torch.float32; expected one type for all; try key.to\(query.dtype\)",
    ),
    "mixed types of value": (
        lambda: attention(Q, K, V.double()),
        r"value is torch.float64, query is torch.float32; .* try value.to\(query.dtype\)",
    ),
    "mask of whole numbers": (
        lambda: attention(Q, K, V, mask=torch.ones(5, 7, dtype=torch.int64)),
        r"mask is torch.int64; expected bool \(True = may attend\) or a float bias; try mask.bool\(\)",
    ),
    "mask of another kind": (
        lambda: attention(Q, K, V, mask="causal"),
        r"mask is str; expected a mask such as causal\(\)",
    ),
    "float to dense": (
        lambda: masks.dense(zeros(5, 7)),
        r"dense: torch.float32 where a bool tensor was expected \(True = may attend\); a float tensor is a bias: pass it as mask=tensor itself",
    ),
    "mask and tensor": (
        lambda: masks.causal() & zeros(5, 5).bool(),
        r"mask & Tensor: both sides must be masks; .* use dense\(tensor\)",
    ),
    "lengths of floats": (
        lambda: masks.padding(zeros(2)),
        r"padding: lengths is torch.float32; expected a tensor of whole numbers",
    ),
    "score class": (lambda: attention(Q, K, V, score=scores.Dot), r"score=Dot is a class; expected an object: Dot\("),
    "score name": (
        lambda: attention(Q, K, V, score="dot"),
        r"score is str; expected a score such as ScaledDot\(\), or a function",
    ),
    "normalizer class": (
        lambda: attention(Q, K, V, normalizer=normalizers.ReLU),
        r"normalizer=ReLU is a class; expected an object: ReLU\(\)",
    ),
    "normalizer name": (
        lambda: attention(Q, K, V, normalizer="relu"),
        r"normalizer is str; expected one of regard.normalizers, such as Softmax\(\)",
    ),
    "seed of floats": (
        lambda: attention(Q, K, V, dropout=0.1, seed=torch.tensor(1.0)),
        r"seed is a tensor \(\) of torch.float32; expected one whole number",
    ),
    "several seeds": (
        lambda: attention(Q, K, V, dropout=0.1, seed=torch.tensor([1, 2])),
        r"seed is a tensor \(2,\) of torch.int64; expected one whole number",
    ),
}

META = torch.device("meta")

DEVICES = {
    "key": (lambda: attention(Q, K.to(META), V), r"key is on meta, query is on cpu; try key.to\(query.device\)"),
    "value": (lambda: attention(Q, K, V.to(META)), r"value is on meta, query is on cpu; try value.to\(query.device\)"),
    "score": (
        lambda: attention(Q, K, V, score=scores.Bilinear(8, 8).to(META)),
        r"score Bilinear has a tensor on meta, query is on cpu; move it to query.device",
    ),
    "normalizer": (
        lambda: attention(Q, K, V, normalizer=normalizers.Softmax(sink=True).to(META)),
        r"normalizer Softmax has a tensor on meta",
    ),
    "mask": (
        lambda: attention(Q, K, V, mask=masks.padding(torch.ones(2, dtype=torch.long, device=META))),
        r"mask Padding has a tensor on meta, query is on cpu",
    ),
    "mask in a mask": (
        lambda: attention(Q, Q, Q, mask=masks.causal() & masks.padding(torch.ones(2, dtype=torch.long, device=META))),
        r"mask And has a tensor on meta",
    ),
    "bool tensor": (
        lambda: attention(Q, K, V, mask=zeros(5, 7, dtype=torch.bool, device=META)),
        r"has a tensor on meta, query is on cpu",
    ),
    "float tensor": (
        lambda: attention(Q, K, V, mask=zeros(5, 7, device=META)),
        r"has a tensor on meta, query is on cpu",
    ),
}

VALUES = {
    "dropout of 1": (lambda: attention(Q, K, V, dropout=1.0), r"dropout=1.0; expected at least 0 and less than 1"),
    "negative dropout": (lambda: attention(Q, K, V, dropout=-0.1), r"dropout=-0.1; expected at least 0"),
    "dropout of NaN": (lambda: attention(Q, K, V, dropout=float("nan")), r"dropout=nan; expected at least 0"),
    "alignment": (lambda: masks.causal(align="left"), r"causal: align='left' is not 'start', 'end' or a whole number"),
    "window": (lambda: masks.window(-1, 0), r"window: left=-1; expected a whole number, 0 or more"),
    "stride": (lambda: masks.strided(0), r"strided: stride=0; expected a whole number, 1 or more"),
    "side": (lambda: masks.padding(torch.tensor([1]), side="top"), r"padding: side='top' is not 'left' or 'right'"),
    "no masks": (lambda: masks.per_head([]), r"per_head: expected a list of masks, one per head"),
}


@pytest.mark.parametrize(
    ("error", "wrong", "message"),
    [
        pytest.param(error, wrong, message, id=f"{error.__name__}: {name}")
        for error, table in ((ShapeError, SHAPES), (DTypeError, TYPES), (DeviceError, DEVICES), (InputError, VALUES))
        for name, (wrong, message) in table.items()
    ],
)
def test_one_error_says_what_is_wrong(error: type[Exception], wrong: Callable, message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_every_error_is_an_input_error_and_a_value_error() -> None:
    for error in (ShapeError, DTypeError, DeviceError):
        assert issubclass(error, InputError)
    assert issubclass(InputError, ValueError)
    assert issubclass(DTypeError, TypeError)


@pytest.mark.parametrize("backend", ["reference", "chunked", "sdpa", "auto"])
def test_every_backend_and_explain_raise_the_same(backend: str) -> None:
    for call in (attention, explain):
        with pytest.raises(ShapeError, match="key has d_k=6, query has d_q=8"):
            call(Q, zeros(2, 4, 7, 6), V, backend=backend)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: scores.Additive(8, 8, -1), "hidden=-1; expected a whole number, 0 or more"),
        (lambda: scores.Bilinear(8, 2.5), "d_k=2.5; expected a whole number"),
        (lambda: normalizers.Entmax("1.5"), "alpha='1.5' is str; expected a number"),
        (lambda: normalizers.GumbelHard(0), "temperature=0; expected more than 0"),
        (lambda: scores.SoftCap(scores.Dot(), -3), "cap=-3; expected more than 0"),
        (lambda: masks.causal() and masks.window(1, 1), "combine masks with & | ~, not with `and`"),
        (lambda: attention(*[torch.zeros(2, 2)] * 3, dropout=0.1, seed=1.5), "seed=1.5; expected a whole number"),
        (lambda: attention(*[torch.zeros(2, 2)] * 3, dropout=0.1, seed=2**64), "expected a whole number of 64 bits"),
        (lambda: attention(*[torch.zeros(2, 2)] * 3, dropout="0.1"), "dropout is str; expected a number"),
    ],
)
def test_wrong_numbers(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def test_a_nan_in_a_bias_is_not_taken_for_a_mask():
    bias = torch.zeros(3, 3)
    bias[1, 2] = float("nan")
    x = torch.randn(3, 2)
    assert attention(x, x, x, mask=bias).isnan().any(-1).tolist() == [False, True, False]
