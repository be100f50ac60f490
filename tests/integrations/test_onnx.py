"""An encoder exported to ONNX gives onnxruntime's users the same states, at lengths it was not traced with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard import normalizers as N
from regard import scores as S
from regard.models.transformer import TransformerEncoder

onnxruntime = pytest.importorskip("onnxruntime")

ENCODERS = {
    "dot": {},
    "rotary": {"position": "rotary"},
    "additive with alibi": {"position": "alibi", "score": S.Additive(8, 8, 8)},
    "entmax": {"normalizer": N.Entmax(1.5)},
    "gated relu": {"score": S.Gated(8, 8), "normalizer": N.ReLU()},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parts", ENCODERS.values(), ids=ENCODERS)
def test_the_same_states_in_onnxruntime(parts: dict, tmp_path: Path) -> None:
    encoder = TransformerEncoder(50, d=16, heads=2, layers=2, **parts).eval()
    tokens, lengths = torch.randint(50, (2, 7)), torch.tensor([7, 4])
    batch, n = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("n", min=2, max=512)
    shapes = {"tokens": {0: batch, 1: n}, "lengths": {0: batch}}
    program = torch.onnx.export(encoder, (tokens, lengths), dynamo=True, dynamic_shapes=shapes, verbose=False)
    assert program is not None
    program.save(tmp_path / "encoder.onnx")

    session = onnxruntime.InferenceSession(tmp_path / "encoder.onnx")
    names = [i.name for i in session.get_inputs()]
    for lengths in (torch.tensor([7, 4]), torch.tensor([1, 11, 5])):
        tokens = torch.randint(50, (len(lengths), int(lengths.max())))
        fed = dict(zip(names, (tokens.numpy(), lengths.numpy()), strict=True))
        states = torch.from_numpy(session.run(None, fed)[0])
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        assert torch.allclose(states[real], encoder(tokens, lengths)[real], atol=1e-5)
