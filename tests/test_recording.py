"""Recording changes no output and computes nothing until asked; what it then gives are the weights that were used."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

import regard
from regard import InputError, Summary, masks, normalizers, scores
from regard.integrations.torch import MultiheadAttention
from regard.nn.attention import Attention, Cache, MultiHeadAttention
from regard.nn.layers import DecoderLayer, EncoderLayer
from regard.recording import record

B, N, D, HEADS = 2, 5, 8, 2
close = torch.testing.assert_close


class Encoder(nn.Module):
    """Two layers of regard.nn."""

    def __init__(self, **parts: object) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(D, HEADS, 16, **parts) for _ in range(2))

    def forward(self, x: Tensor, mask: object = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask=mask)
        return x


def weights_by_hand(attend: MultiHeadAttention, x: Tensor, mask: object = None) -> Tensor:
    q, k, _ = attend.project(x)
    one = attend.attentions[0]
    return regard.attention_weights(q, k, score=one.score, normalizer=one.normalizer, mask=mask)


def test_a_record_for_each_attention_under_its_own_name() -> None:
    model, x = Encoder(), torch.randn(B, N, D)
    with record(model) as records:
        model(x, masks.causal())
    assert records.names == ["layers.0.attention", "layers.1.attention"]
    assert len(records) == 2
    assert [one.name for one in records] == records.names
    assert records["layers.0.attention"] is records[0]
    assert records[0].shape == (B, HEADS, N, N)
    layer = model.layers[0]
    normed = layer.around_attention.norm(x)
    close(records[0].weights(), weights_by_hand(layer.attention, normed, masks.causal()).detach())
    assert isinstance(records[0].score, scores.ScaledDot)
    assert isinstance(records[0].normalizer, normalizers.Softmax)
    assert records[0].mask.allowed(regard.Extent((), 2, 2, x.device).tile()).tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("training", [True, False])
def test_the_output_and_the_random_numbers_do_not_change_by_a_bit(training: bool) -> None:
    x = torch.randn(B, N, D)
    for parts in (
        {"dropout": 0.5},
        {"normalizer": normalizers.GumbelHard()},
        {"score": [scores.Dot(), scores.Gaussian()]},
    ):
        model = Encoder(**parts).train(training)
        torch.manual_seed(1)
        plain, after = model(x), torch.rand(())
        torch.manual_seed(1)
        with record(model) as records:
            watched = model(x)
        assert torch.equal(watched, plain)
        assert torch.equal(torch.rand(()), after)
        state = torch.get_rng_state()
        records[0].weights()
        assert torch.equal(torch.get_rng_state(), state)  # nor when it is read


def test_chosen_rows_and_heads_are_those_of_the_whole() -> None:
    model = MultiHeadAttention(D, 4, key_heads=2)
    with record(model) as records:
        model(torch.randn(B, N, D))
    (one,) = records
    whole = one.weights()
    assert whole.shape == (B, 4, N, N)
    assert torch.equal(one.weights(rows=2), whole[..., 2:3, :])
    assert torch.equal(one.weights(rows=[-1, 0]), whole[..., [4, 0], :])
    assert torch.equal(one.weights(rows=slice(1, 3), heads=torch.tensor([3, 1])), whole[:, [3, 1], 1:3])
    with pytest.raises(InputError, match=r"rows=5; expected whole numbers from 0 to 4"):
        one.weights(rows=5)
    with pytest.raises(InputError, match=r"heads=\[0, 4\]; expected whole numbers from 0 to 3"):
        one.weights(heads=[0, 4])


def test_weights_in_blocks_of_rows_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MultiHeadAttention(D, HEADS, score=scores.Additive(4, 4, 3))
    with record(model) as records:
        model(torch.randn(B, N, D), mask=masks.window(1, 1))
    whole = records[0].weights()
    monkeypatch.setattr("regard.recording.records.AT_ONCE", 2 * B * HEADS * N * 3)
    close(records[0].weights(), whole)


def test_heads_with_scores_of_their_own_are_one_record() -> None:
    each = [scores.Dot(), scores.Gaussian(1.0), scores.Additive(4, 4, 3), scores.ScaledDot()]
    model, x = MultiHeadAttention(16, 4, key_heads=2, score=each), torch.randn(B, N, 16)
    only = [masks.causal(), masks.window(1, 1), masks.causal(), masks.window(0, 2)]
    with record(model) as records:
        model(x, mask=only)
        model(x, mask=only)
    assert [one.call for one in records] == [0, 1]
    q, k, _ = model.project(x)
    k = k.repeat_interleave(2, dim=1)
    by_hand = [regard.attention_weights(q[:, h], k[:, h], score=each[h], mask=only[h]) for h in range(4)]
    one = records[1]
    assert one.shape == (B, 4, N, N)
    assert one.score == tuple(each)
    close(one.weights(), torch.stack(by_hand, dim=1).detach())
    close(one.weights(heads=[2, 0], rows=1), torch.stack([by_hand[2], by_hand[0]], dim=1)[..., 1:2, :].detach())
    close(one.query, q.detach())
    close(one.key, k.detach())
    summary = one.summary(top=2)
    close(summary.mass, one.weights().sum(-2))
    close(summary.top_weights, one.weights().topk(2).values)
    assert summary.pooled.shape == (B, 4, N, N)
    assert summary.lse.shape == summary.entropy.shape == (B, 4, N)


def test_a_summary_is_that_of_attention_summary() -> None:
    model, x = MultiHeadAttention(D, HEADS), torch.randn(B, N, D)
    with record(model) as records:
        model(x, mask=masks.causal())
    q, k, _ = model.project(x)
    expected = regard.attention_summary(q, k, mask=masks.causal(), top=3, pool=2)
    summary = records[0].summary(top=3, pool=2)
    assert isinstance(summary, Summary)
    for name in ("lse", "entropy", "top_weights", "top_indices", "mass", "pooled"):
        close(getattr(summary, name), getattr(expected, name))


def test_the_weights_of_a_random_choice_are_those_that_were_drawn() -> None:
    attend = Attention(normalizer=normalizers.GumbelHard(), dropout=0.0)
    q, k, v = (torch.randn(B, HEADS, N, 4) for _ in range(3))
    with record(attend) as records:
        outputs = [attend(q, k, v) for _ in range(3)]
    for one, output in zip(records, outputs, strict=True):
        close(one.weights() @ v, output)
    assert not torch.equal(outputs[0], outputs[1])
    assert records.names == ["Attention"]


def test_each_step_of_decoding_is_a_record() -> None:
    model, x, cache = DecoderLayer(D, HEADS, 16), torch.randn(1, 3, D), Cache()
    with record(model) as records:
        for step in range(3):
            model.attention(x[:, step : step + 1], cache=cache)
        model.cross_attention(x, torch.randn(1, 4, D))
    assert [one.shape[-2:] for one in records.calls("attention")] == [(1, 1), (1, 2), (1, 3)]
    assert [one.call for one in records.calls("attention")] == [0, 1, 2]
    assert records["attention"].call == 2  # the latest
    assert records["cross_attention"].shape == (1, HEADS, 3, 4)
    assert "attention" in records
    assert "somewhere" not in records
    with pytest.raises(InputError, match="no record of 'somewhere'; there are: attention, cross_attention"):
        records["somewhere"]


def test_only_and_keep_bound_what_is_held() -> None:
    model, x = Encoder(), torch.randn(B, N, D)
    with record(model, only="layers.1*", keep=2) as records:
        for _ in range(3):
            model(x)
    assert records.names == ["layers.1.attention"]
    assert [one.call for one in records] == [1, 2]
    with pytest.raises(InputError, match="keep=0; expected 1 or more"), record(model, keep=0):
        pass


def hooks(model: nn.Module) -> int:
    return sum(len(m._forward_pre_hooks) + len(m._forward_hooks) + ("forward" in vars(m)) for m in model.modules())


def test_nothing_stays_behind_even_after_an_exception_and_records_do() -> None:
    model = nn.ModuleList(
        [Encoder(), nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, 16, batch_first=True), 1)]
    )
    x = torch.randn(B, N, D)
    with record(model) as records:
        assert hooks(model) > 3
        model[0](x)
    with pytest.raises(ZeroDivisionError), record(model):
        raise ZeroDivisionError
    assert hooks(model) == 0
    assert records[0].weights().shape == (B, HEADS, N, N)
    model[0](x)
    assert len(records) == 2


def test_records_nest() -> None:
    model, x = nn.ModuleList([Encoder(), nn.MultiheadAttention(D, HEADS, batch_first=True)]), torch.randn(B, N, D)
    with record(model) as outer:
        with record(model) as inner:
            model[1](model[0](x), x, x)
        model[1](x, x, x)
    assert (len(inner), len(outer)) == (3, 4)
    assert torch.equal(inner[2].weights(), outer[2].weights())
    assert hooks(model) == 0


def test_nothing_is_computed_and_nothing_is_copied_until_asked() -> None:
    attend = Attention()
    q, k, v = (torch.randn(HEADS, N, 4, requires_grad=True) for _ in range(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.recording.records._weights", lambda *_: pytest.fail("computed"))
        with record(attend) as records:
            attend(q, k, v)
    assert records[0].query.data_ptr() == q.data_ptr()
    assert records[0].key.data_ptr() == k.data_ptr()
    assert not records[0].query.requires_grad
    held = weakref.ref(v)
    del v
    gc.collect()
    assert held() is None  # values are not held


def test_what_the_model_has_overwritten_is_refused_and_copies_are_not() -> None:
    model, x = Encoder(score=scores.Additive(4, 4, 3)), torch.randn(B, N, D)
    with record(model) as views, record(model, copy=True) as copies:
        model(x)
    before = views[0].weights()
    with torch.no_grad():
        model.layers[0].attention.attentions[0].score.v.add_(1)
    with pytest.raises(InputError, match=r"layers.0.attention: the model has overwritten a tensor .* copy=True"):
        views[0].weights()
    assert torch.equal(copies[0].weights(), before)


def test_under_autocast_the_weights_are_those_of_autocast() -> None:
    attend, (q, k, v) = Attention(), torch.randn(3, HEADS, N, 4)
    with torch.autocast("cpu", torch.bfloat16), record(attend) as records:
        attend(q, k, v)
        expected = regard.attention_weights(q, k)
    assert torch.equal(records[0].weights(), expected)
    assert not torch.equal(expected, regard.attention_weights(q, k))


def test_inference_mode_can_be_recorded() -> None:
    model = MultiHeadAttention(D, HEADS)
    with torch.inference_mode(), record(model) as records:
        model(torch.randn(B, N, D))
    close(records[0].weights().sum(-1), torch.ones(B, HEADS, N))


def test_a_model_without_attention_and_a_compiled_one_are_refused() -> None:
    with pytest.raises(InputError, match="Linear has no attention that can be watched"), record(nn.Linear(2, 2)):
        pass
    compiled = torch.compile(MultiHeadAttention(D, HEADS))
    with pytest.raises(InputError, match="is compiled, and compiled code cannot be watched"), record(compiled):
        pass


# torch.nn


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "mask",
    [
        {},
        {"attn_mask": torch.ones(N, N).triu(1).bool()},
        {"attn_mask": torch.randn(N, N)},
        {"key_padding_mask": torch.arange(N) >= torch.tensor([[5], [3]])},
    ],
    ids=["none", "bool", "float", "padding"],
)
def test_torchs_multihead_attention_is_seen_without_asking_it_for_weights(batch_first: bool, mask: dict) -> None:
    model = nn.MultiheadAttention(D, HEADS, batch_first=batch_first, kdim=3, add_bias_kv=True)
    nn.init.normal_(model.in_proj_bias)
    x, k = torch.randn(B, N, D), torch.randn(B, N, 3)
    q, k, v = (t if batch_first else t.transpose(0, 1) for t in (x, k, torch.randn(B, N, D)))
    with record(nn.ModuleDict({"attend": model})) as records:
        watched = model(q, k, v, need_weights=False, **mask)[0]
    assert torch.equal(watched, model(q, k, v, need_weights=False, **mask)[0])
    expected = model(q, k, v, average_attn_weights=False, **mask)[1]
    close(records["attend"].weights(), expected.detach())


def test_our_drop_in_goes_by_its_own_name() -> None:
    layer = nn.TransformerEncoderLayer(D, HEADS, 16, batch_first=True)
    layer.self_attn = MultiheadAttention(D, HEADS, batch_first=True, normalizer=normalizers.Sparsemax())
    with record(layer) as records:
        layer(torch.randn(B, N, D))
    assert records.names == ["self_attn"]


PADDED = torch.arange(N) >= torch.tensor([[4], [3]])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize(
    ("given", "padded"),
    [({}, None), ({"mask": torch.ones(N, N).triu(1).bool()}, None), ({"src_key_padding_mask": PADDED}, PADDED)],
    ids=["none", "causal", "padding"],
)
def test_torchs_fused_encoder_stays_fused_and_is_seen(
    given: dict, padded: Tensor | None, norm_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In evaluation torch runs a whole layer as one operator, unless a hook is anywhere in it; the operator
    rounds differently, so with hooks the output would change."""
    layer = nn.TransformerEncoderLayer(D, HEADS, 16, batch_first=True, norm_first=norm_first)
    model, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval(), torch.randn(B, N, D)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    fused, calls = torch._transformer_encoder_layer_fwd, []
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *args: calls.append(1) or fused(*args))
    with torch.no_grad():
        plain = model(x, **given)
        with record(model) as records:
            watched = model(x, **given)
    assert len(calls) == 4
    assert torch.equal(watched, plain)
    assert records.names == ["layers.0.self_attn", "layers.1.self_attn"]
    with record(model) as slow:  # with gradients torch leaves its fused path
        model(x, **given)
    assert len(calls) == 4
    assert len(slow) == 2
    for one, other in zip(records, slow, strict=True):
        # A packed batch has no padded queries: after the first layer nothing of them is left to compare.
        real = slice(None) if padded is None else ~padded[:, None, :, None].expand(B, HEADS, N, N)
        close(one.weights()[real], other.weights()[real], atol=1e-4, rtol=1e-4)
