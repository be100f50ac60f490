"""What the gallery says of each mechanism, in the order in which it shows them. `python -m docs.build` makes a page of
each: the formula, the code (which runs, and whose mechanism is drawn), when to use it, what it costs.

A row's code leaves behind what is drawn: `score`, `normalizer` or `mask`, which are then applied to one sentence; or
`weights` with the names of its `rows` and `columns`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    kind: str  # one of KINDS
    slug: str
    title: str
    shows: tuple[str, ...]  # the classes and functions that it explains
    formula: str
    code: str
    what: str
    when: str
    note: str = ""  # below the picture


KINDS = {
    "first": ("First steps", "a table that is asked softly, and one attention opened"),
    "score": ("Scores", "s(q, k): how well a key fits a query"),
    "normalizer": ("Normalizers", "from one query's scores to weights"),
    "mask": ("Masks", "which pairs exist: True may attend"),
    "position": ("Positions", "how attention learns the order of words"),
    "words": ("Words", "from words to vectors"),
    "layer": ("Layers", "heads side by side, and what attention replaced"),
    "model": ("Models", "what is built from attention"),
    "task": ("Tasks", "what a trained model does"),
}
UNTRAINED = "Its parameters are random here, from seed 0, not trained."

FIRST = [
    Entry(
        "first", "table", "Exact lookup in a table", ("Database",),
        "Attention(q, D) = Σ_i weight(q, k_i) · v_i,   weight = 1 where k_i = q, else 0",
        """
        import torch
        from regard import Database

        major = Database(["Ann", "Bob", "Eve"], ["Physics", "Law", "Physics"])
        print(major.query("Bob"))
        print(major.query("Zoe"))                          # no such key
        print(major.inverse().query("Physics"))            # keys and values exchanged
        rows, columns = ["Ann?", "Bob?", "Eve?", "Zoe?"], ["Ann", "Bob", "Eve"]
        weights = torch.stack([major.query(row[:-1]).weights for row in rows])
        """,
        "What a dictionary does, said by the formula: the weights of a query are one-hot, the sum is the stored value. Only "
        "keys can be asked for; a query that equals no key gets nothing.",
        "As the case from which all others are a softening. `regard lookup` does it over CSV, Parquet and SQLite.",
    ),
    Entry(
        "first", "soft-table", "Soft lookup in a table", ("Database.query",),
        "weight(q, k_i) = softmax_i(−(q − k_i)² / 2σ²)",
        """
        from regard import Database
        from regard.scores import Gaussian

        gpa = [2.0, 2.5, 3.0, 3.2, 3.4, 3.5, 3.6, 3.8, 4.0]
        salary = Database(gpa, [38e3, 42.5e3, 51e3, 54e3, 58.5e3, 62e3, 63.5e3, 71e3, 78e3])
        print(salary.query(3.5, score=Gaussian(0.1)))
        print(salary.query(3.3, score=Gaussian(0.1)).value)  # a key that is not there
        rows, columns = ["2.8?", "3.3?", "3.5?", "3.9?"], [f"{x:g}" for x in gpa]
        weights = salary.query([float(x[:-1]) for x in rows], score=Gaussian(0.1)).weights
        """,
        "Near keys weigh most. The answer for a key that is not in the table is a mean of its neighbours' values.",
        "To see what a score and a normalizer do, with numbers that mean something. "
        "`regard lookup examples/gpa.csv --key gpa --value salary --query 3.5 --score gaussian:0.1`",
    ),
    Entry(
        "first", "step-by-step", "One attention, step by step", ("step_by_step", "Steps"),
        "a → q, k, v → α → α′ → b",
        """
        import torch
        from regard import step_by_step

        torch.manual_seed(0)
        words = ["This", "is", "a", "cat"]
        a, *w = torch.randn(4, 4).round(decimals=1), *torch.randn(3, 4, 4).round(decimals=1)
        steps = step_by_step(a, *w)                        # any score=, normalizer= and mask=
        torch.testing.assert_close(steps.scores, (a @ w[0]) @ (a @ w[1]).mT / 4**0.5)
        torch.testing.assert_close(steps.b, steps.scores.softmax(-1) @ (a @ w[2]))
        rows, columns, weights = words, words, steps.weights
        """,
        "Every number on the way is there to be looked at: what each word asks (q), offers (k) and says (v), how well each key "
        "answers each query (α), the weights (α′), the output (b).",
        "To learn, to teach, to check an implementation. `regard walk \"This is a cat\"` prints it, "
        "`regard show \"This is a cat\" --view walk --out cat.html` is a page in which every number can be changed.",
    ),
]  # fmt: skip

SCORES = [
    Entry(
        "score", "scaled-dot", "Scaled dot product", ("ScaledDot",),
        "s(q, k) = q · k / √d",
        """
        import torch, regard
        from regard.scores import ScaledDot

        q, k, v = torch.randn(3, 2, 14, 8)     # each: heads, words, d
        score = ScaledDot()                    # the default: regard.attention(q, k, v) means this one
        out = regard.attention(q, k, v, score=score)
        by_hand = torch.softmax(q @ k.mT / 8**0.5, -1) @ v
        torch.testing.assert_close(out, by_hand)
        """,
        "Large where both point the same way. Dividing by √d keeps its spread at 1 however wide the vectors are, so that "
        "softmax neither saturates nor flattens.",
        "First, and nearly always. It is what every fused kernel knows.",
    ),
    Entry(
        "score", "dot", "Dot product", ("Dot",),
        "s(q, k) = q · k",
        """
        import torch, regard
        from regard.scores import Dot

        q, k, v = torch.randn(3, 14, 8)
        score = Dot()
        out = regard.attention(q, k, v, score=score)
        torch.testing.assert_close(out, torch.softmax(q @ k.mT, -1) @ v)
        """,
        "The plain dot product (Luong's “dot”). Its size grows with √d, so weights become nearly one-hot for wide vectors.",
        "When q and k are already scaled or normalized, and to compare with older models.",
    ),
    Entry(
        "score", "additive", "Additive (Bahdanau)", ("Additive",),
        "s(q, k) = vᵀ tanh(W_q q + W_k k + b)",
        """
        import torch, regard
        from regard.scores import Additive

        torch.manual_seed(0)
        score = Additive(8, 8, hidden=16)      # d_q and d_k may differ
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, score=score)
        out.sum().backward()                   # an n × n × hidden tensor is never built
        print(score.w_q.grad.shape)
        """,
        "A small network looks at each pair. This is the attention that first aligned words in translation.",
        "When queries and keys come from different spaces (an RNN's decoder and encoder), and for few words: it costs "
        "`hidden` numbers for each pair.",
        UNTRAINED,
    ),
    Entry(
        "score", "tanh-sum", "Tanh of the sum", ("TanhSum",),
        "s(q, k) = wᵀ tanh(q + k)",
        """
        import torch, regard
        from regard.scores import TanhSum

        torch.manual_seed(0)
        score = TanhSum(8)
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, score=score)
        pair = torch.tanh(q[0] + k[3]) @ score.v.squeeze()   # the score of word 0 with word 3
        torch.testing.assert_close(score(q, k)[0, 3], pair)
        """,
        "The additive score of lecture notes, without matrices: with d = 1 it is w · tanh(q + k), which can be done by hand.",
        "To learn and to teach. q and k bring their own projections.",
        UNTRAINED,
    ),
    Entry(
        "score", "bilinear", "Multiplicative (Luong’s “general”)", ("Bilinear",),
        "s(q, k) = qᵀ W k",
        """
        import torch, regard
        from regard.scores import Bilinear

        torch.manual_seed(0)
        q, k, v = torch.randn(14, 6), torch.randn(14, 8), torch.randn(14, 8)
        score = Bilinear(6, 8)                 # widths that differ
        out = regard.attention(q, k, v, score=score)
        score = Bilinear(8, 8)                 # (drawn here)
        print(regard.explain(k, k, v, score=score).backend)
        """,
        "A learned dot product. W folds into the query once for each word, so that pairs cost no more than a dot product.",
        "When q and k have different widths or meanings and speed matters.",
        UNTRAINED,
    ),
    Entry(
        "score", "gated", "Gated", ("Gated",),
        "s(q, k) = g · (q · k),   g = σ(W_g [q; k])",
        """
        import torch, regard
        from regard.scores import Gated

        torch.manual_seed(0)
        score = Gated(8, 8)
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, score=score)
        a, c = q @ score.gate[:8], k @ score.gate[8:]        # one number for each word
        torch.testing.assert_close(score(q, k), torch.sigmoid(a + c.mT) * (q @ k.mT))
        """,
        "A gate between 0 and 1 lets a pair speak or not, whatever its dot product. It is a sum of two numbers, one of the "
        "query and one of the key, computed once for each word.",
        "When some pairs should be able to say nothing at all.",
        UNTRAINED,
    ),
    Entry(
        "score", "gaussian", "Distance (Gaussian kernel)", ("Gaussian",),
        "s(q, k) = −‖q − k‖² / 2σ²",
        """
        import torch, regard
        from regard.scores import Gaussian

        gpa = torch.tensor([[3.0], [3.3], [3.5], [3.6], [4.0]])
        salary = torch.tensor([[48.0], [55.0], [62.0], [60.0], [75.0]])
        asked = torch.tensor([[3.5]])
        print(regard.attention(asked, gpa, salary, score=Gaussian(0.1)))   # near keys weigh most
        score = Gaussian(2.0)                                              # (drawn here)
        """,
        "Near keys weigh most. Under softmax this is kernel regression: the oldest attention there is.",
        "For numbers, places and times, where distance means something; as a soft lookup in a table.",
    ),
    Entry(
        "score", "exact", "Exact lookup", ("Exact",),
        "s(q, k) = 1 if q = k, else 0",
        """
        import regard
        from regard.scores import Exact

        major = regard.Database(["Ann", "Bob", "Eve"], ["Physics", "Law", "Physics"])
        print(major.query("Ann"))              # Physics
        print(major.inverse().query("Physics"))   # Ann and Eve
        score = Exact()
        """,
        "An ordinary dictionary, written as attention: with no normalizer the row is one-hot, and a query that matches "
        "nothing gives zeros. (Drawn here under softmax: equal words see each other.)",
        "To see that attention is a database that can also be asked softly.",
    ),
    Entry(
        "score", "soft-cap", "Soft cap", ("SoftCap",),
        "s′(q, k) = cap · tanh(s(q, k) / cap)",
        """
        import torch, regard
        from regard.scores import ScaledDot, SoftCap

        q, k, v = torch.randn(3, 14, 8)
        score = SoftCap(ScaledDot(), cap=2.0)  # around any score
        out = regard.attention(q, k, v, score=score)
        print(score(100 * q, k).abs().max())   # never above 2
        """,
        "Scores stay within ±cap, so no weight runs away; gradients shrink instead of stopping.",
        "For large models in half precision, and where training diverges.",
    ),
    Entry(
        "score", "own", "A score of your own", ("Function", "Score"),
        "s(q, k) = whatever you say",
        """
        import torch, regard

        def score(q, k):                       # any function of queries and keys
            return -torch.cdist(q, k, p=1)

        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, score=score, mask=regard.masks.window(3, 3))
        print(regard.explain(q, k, v, score=score))
        """,
        "A function of (query, key) is enough: normalizers, masks, gradients and statistics work with it at once. A class of "
        "a few lines (CONTRIBUTING.md) also gets its parameters saved and its projections done once for each word.",
        "When no other row of this table is what you need.",
    ),
]  # fmt: skip

NORMALIZERS = [
    Entry(
        "normalizer", "softmax", "Softmax", ("Softmax",),
        "wᵢ = exp(sᵢ) / Σⱼ exp(sⱼ)",
        """
        import torch, regard
        from regard.normalizers import Softmax

        q, k, v = torch.randn(3, 14, 8)
        normalizer = Softmax()                 # the default
        weights = regard.attention_weights(q, k, normalizer=normalizer)
        print(weights.sum(-1))                 # rows sum to 1, nothing is exactly 0
        """,
        "Positive weights that sum to 1.",
        "First, and nearly always.",
    ),
    Entry(
        "normalizer", "softmax-sink", "Softmax with a sink", ("Softmax(sink=True)",),
        "wᵢ = exp(sᵢ) / (exp(z) + Σⱼ exp(sⱼ)),   z learned",
        """
        import torch, regard
        from regard.normalizers import Softmax

        normalizer = Softmax(sink=True)        # z = 0 at first
        q, k, v = torch.randn(3, 14, 8)
        weights = regard.attention_weights(q, k, normalizer=normalizer)
        print(1 - weights.sum(-1))             # what went to nobody
        """,
        "A learned score beside those of the keys: a query may spend its weight on nothing.",
        "Where heads would otherwise pile their weight on the first token to say nothing.",
    ),
    Entry(
        "normalizer", "sigmoid", "Sigmoid", ("Sigmoid",),
        "wᵢ = σ(sᵢ + b)",
        """
        import math, torch, regard
        from regard.normalizers import Sigmoid

        q, k, v = torch.randn(3, 14, 8)
        normalizer = Sigmoid(bias=-math.log(14))   # the usual −log n
        weights = regard.attention_weights(q, k, normalizer=normalizer)
        print(weights.sum(-1))                 # no sum is prescribed
        """,
        "Each pair for itself: keys do not compete, so a row is never computed as a whole.",
        "When several keys may all matter, or none. The bias −log n starts it near softmax's sums.",
    ),
    Entry(
        "normalizer", "relu", "ReLU", ("ReLU",),
        "wᵢ = max(sᵢ, 0)",
        """
        import torch, regard
        from regard.normalizers import ReLU

        q, k, v = torch.randn(3, 14, 8)
        normalizer = ReLU()
        weights = regard.attention_weights(q, k, normalizer=normalizer)
        print((weights == 0).float().mean())   # half of the pairs, for random vectors
        """,
        "What does not fit has weight exactly 0, what fits its own score.",
        "For sparse, cheap weights where outputs are normalized afterwards.",
    ),
    Entry(
        "normalizer", "sparsemax", "Sparsemax", ("Sparsemax",),
        "w = argmin over p ≥ 0, Σp = 1 of ‖p − s‖²",
        """
        import torch, regard
        from regard.normalizers import Sparsemax

        q, k, v = torch.randn(3, 14, 8)
        normalizer = Sparsemax()
        weights = regard.attention_weights(q, k, normalizer=normalizer)
        print((weights > 0).sum(-1))           # a few keys for each query
        """,
        "The distribution nearest to the scores: rows sum to 1, and most keys have exactly 0.",
        "When you want to read off which words mattered, and others to be out.",
    ),
    Entry(
        "normalizer", "entmax", "α-entmax", ("Entmax",),
        "w = argmax over p ≥ 0, Σp = 1 of p · s + H_α(p)",
        """
        import torch, regard
        from regard.normalizers import Entmax

        q, k, v = torch.randn(3, 14, 8)
        normalizer = Entmax(1.5)               # α → 1 is softmax, α = 2 is sparsemax
        for alpha in (1.1, 1.5, 2.0, 3.0):
            weights = regard.attention_weights(q, k, normalizer=Entmax(alpha))
            print(alpha, (weights > 0).sum(-1).float().mean())
        """,
        "Between softmax and sparsemax: α says how sparse.",
        "As sparsemax, but gentler; 1.5 is the usual choice.",
    ),
    Entry(
        "normalizer", "identity", "None", ("Identity",),
        "wᵢ = sᵢ",
        """
        import torch, regard
        from regard.normalizers import Identity

        q, k, v = torch.randn(3, 14, 8)
        normalizer = Identity()
        out = regard.attention(q, k, v, normalizer=normalizer)
        torch.testing.assert_close(out, (q @ k.mT / 8**0.5) @ v)
        """,
        "The raw scores, as in the general formula Σ s(q, kᵢ) · vᵢ. Weights may be negative.",
        "For lookups, for linear models, and to see what a normalizer does.",
    ),
    Entry(
        "normalizer", "hard", "Hard", ("Hard",),
        "w = one-hot at argmax s",
        """
        import torch, regard
        from regard.normalizers import Hard

        q, k, v = torch.randn(3, 14, 8)
        normalizer = Hard()
        out = regard.attention(q, k, v, normalizer=normalizer)
        drawn = regard.sample_attention(q, k, v, seed=0)      # or draw the key, for REINFORCE
        print(drawn.index, drawn.log_prob.shape, drawn.entropy.shape)
        """,
        "One key for each query, a binary choice. It has no gradient: training draws keys and rewards good draws "
        "(`regard.models.hard.Reinforce`).",
        "When exactly one thing shall be looked at.",
    ),
    Entry(
        "normalizer", "gumbel-hard", "Straight-through Gumbel", ("GumbelHard",),
        "forward: one-hot at argmax (s + g);   backward: softmax((s + g) / τ)",
        """
        import torch, regard
        from regard.normalizers import GumbelHard

        q, k, v = torch.randn(3, 14, 8)
        training = GumbelHard(temperature=0.5)
        out = regard.attention(q.requires_grad_(), k, v, normalizer=training, seed=0)
        out.sum().backward()                   # gradients as if it had been soft
        normalizer = training.eval()           # after training: the largest score
        """,
        "Hard in what it does, soft in what it learns from. The noise is a function of `seed` alone.",
        "To train hard attention without REINFORCE.",
    ),
]  # fmt: skip

DRAWN = [
    Entry(
        "normalizer", "sample", "Drawn, for REINFORCE", ("sample_attention", "Sample"),
        "i ~ softmax(s),   output = v_i",
        """
        import torch, regard

        torch.manual_seed(0)
        q, k = torch.randn(14, 8, requires_grad=True), torch.randn(14, 8)
        drawn = regard.sample_attention(q, k, k, seed=0)   # one key for each query
        reward = -(drawn.output.detach() - k).norm(dim=-1)
        loss = -(reward - reward.mean()) * drawn.log_prob - 0.1 * drawn.entropy
        loss.sum().backward()                              # the draw itself has no gradient
        print(drawn.index)
        """,
        "One key for each query, by chance in proportion to its weight. The probability of the draw carries the gradient, so a "
        "reward can teach it; its entropy keeps it curious. The picture is of the probabilities.",
        "For hard attention where straight-through Gumbel is too biased. `regard.models.hard.Reinforce` trains any model so.",
    ),
]  # fmt: skip

MASKS = [
    Entry(
        "mask", "causal", "Causal", ("causal",),
        "j ≤ i",
        """
        import torch, regard
        from regard.masks import causal

        q, k, v = torch.randn(3, 14, 8)
        mask = causal()
        out = regard.attention(q, k, v, mask=mask)
        newest = regard.attention(q[-1:], k, v, mask=causal("end"))   # n_q ≠ n_k: say where queries stand
        torch.testing.assert_close(out[-1:], newest)
        """,
        "A word sees itself and those before it.",
        "Whenever a model writes: it must not see what it has not written yet.",
    ),
    Entry(
        "mask", "window", "Window", ("window",),
        "i − left ≤ j ≤ i + right",
        """
        import torch, regard
        from regard.masks import causal, window

        q, k, v = torch.randn(3, 14, 8)
        mask = window(2, 2)                    # itself included
        out = regard.attention(q, k, v, mask=mask)
        past = regard.attention(q, k, v, mask=window(2, 0))            # the last three
        torch.testing.assert_close(past, regard.attention(q, k, v, mask=causal() & window(2, 2)))
        """,
        "A word sees its neighbours. Blocks that nobody sees are skipped, so the cost is n · window.",
        "For speech and long texts, where what matters is near.",
    ),
    Entry(
        "mask", "dilated", "Dilated window", ("dilated",),
        "j = i + m · step,   −left ≤ m ≤ right",
        """
        import torch, regard
        from regard.masks import dilated

        q, k, v = torch.randn(3, 14, 8)
        mask = dilated(2, 2, 3)                # two to the left, two to the right, every third word
        print(regard.attention_weights(q, k, mask=mask)[6].nonzero().flatten())
        """,
        "A window with gaps: the same number of keys reach further.",
        "In stacks of layers with growing steps, as in dilated convolutions.",
    ),
    Entry(
        "mask", "strided", "Strided", ("strided",),
        "(i − j) mod stride = 0",
        """
        import torch, regard
        from regard.masks import causal, strided

        q, k, v = torch.randn(3, 14, 8)
        mask = strided(4)
        out = regard.attention(q, k, v, mask=causal() & mask)
        """,
        "Every word of the same rest.",
        "For what is periodic: rows of an image, beats, columns of a table.",
    ),
    Entry(
        "mask", "blocks", "Blocks", ("blocks",),
        "⌊i / size⌋ = ⌊j / size⌋,   or a layout of blocks",
        """
        import torch, regard
        from regard.masks import blocks

        layout = torch.tensor([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]).bool()
        mask = blocks(4, layout)               # which block sees which; blocks(4): each sees itself
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, mask=mask)
        """,
        "Words in blocks; whole blocks see whole blocks.",
        "For block-sparse patterns of your own, at the speed of what is left.",
    ),
    Entry(
        "mask", "random-blocks", "Random blocks", ("random_blocks",),
        "each block of queries sees `count` blocks of keys, drawn from the seed",
        """
        import torch, regard
        from regard.masks import global_tokens, random_blocks, window

        mask = random_blocks(2, 2, seed=0)
        bird = mask | window(1, 1) | global_tokens([0])   # the pattern of BigBird
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, mask=bird)
        """,
        "A few blocks by chance: in a few layers everything reaches everything.",
        "With a window and global tokens, for very long texts.",
    ),
    Entry(
        "mask", "global-tokens", "Global tokens", ("global_tokens",),
        "i ∈ G or j ∈ G",
        """
        import torch, regard
        from regard.masks import global_tokens, window

        mask = global_tokens([0, 7]) | window(1, 1)
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, mask=mask)
        """,
        "A few words see everything and are seen by everything. (Drawn with a window of one word to each side.)",
        "To carry what concerns the whole text: a class token, a question, a headline.",
    ),
    Entry(
        "mask", "positions", "Chosen positions", ("positions",),
        "j ∈ P, or j ∈ P(i)",
        """
        import torch, regard
        from regard.masks import positions

        mask = positions([1, 6, 8])            # or a tensor with a row of positions for each query
        q, k, v = torch.randn(3, 14, 8)
        weights = regard.attention_weights(q, k, mask=mask)
        print((weights > 0).sum(-1))           # three each
        """,
        "Keys by their places: work on the others is left out, not multiplied by zero.",
        "For sparse attention whose pattern something else decides (a retriever, a sorting).",
    ),
    Entry(
        "mask", "padding", "Padding", ("padding",),
        "j < length, or j ≥ n − length at the left",
        """
        import torch, regard
        from regard.masks import causal, padding

        q, k, v = torch.randn(3, 2, 14, 8)     # two sentences
        lengths = torch.tensor([14, 9])        # stays on its device
        out = regard.attention(q, k, v, mask=causal() & padding(lengths))
        mask = padding(torch.tensor([10]))     # (drawn here)
        """,
        "Sentences of different lengths in one batch. What stands in the padding, NaN included, changes not one bit.",
        "Always, when a batch is padded.",
    ),
    Entry(
        "mask", "documents", "Documents", ("documents",),
        "id(i) = id(j)",
        """
        import torch, regard
        from regard.masks import causal, documents

        ids = torch.tensor([0] * 5 + [1] * 6 + [2] * 3)   # three texts, packed into one row
        mask = documents(ids)
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, mask=causal() & mask)
        """,
        "Several texts in one row that do not see each other; id −1 sees nothing.",
        "To train on packed sequences, without padding.",
    ),
    Entry(
        "mask", "per-head", "One mask for each head", ("per_head",),
        "head h has mask h",
        """
        import torch, regard
        from regard.masks import causal, per_head, window

        q, k, v = torch.randn(3, 2, 14, 8)     # two heads
        mask = per_head([window(1, 1), causal()])
        out = regard.attention(q, k, v, mask=mask)
        """,
        "Heads with different scopes: a word to its neighbours in one, to its whole past in another.",
        "To share work among heads.",
    ),
    Entry(
        "mask", "dense", "A mask of your own", ("dense",),
        "any matrix of True and False; & | ~ combine masks",
        """
        import torch, regard
        from regard.masks import causal, dense, window

        i = torch.arange(14)
        mask = dense((i[:, None] ^ i) < 8)     # a matrix, for what no rule says
        other = ~window(0, 0) & causal()       # rules are combined without one
        q, k, v = torch.randn(3, 14, 8)
        out = regard.attention(q, k, v, mask=mask | other)
        """,
        "A matrix costs n² bits; rules joined by &, | and ~ cost nothing and skip work.",
        "When none of the rules says what you mean.",
    ),
]  # fmt: skip

POSITIONS = [
    Entry(
        "position", "none", "Without positions", (),
        "permuting the input only permutes the output",
        """
        import torch
        from regard.nn import MultiHeadAttention

        torch.manual_seed(0)
        attend, x, order = MultiHeadAttention(16, heads=2), torch.randn(1, 14, 16), torch.randperm(14)
        torch.testing.assert_close(attend(x)[:, order], attend(x[:, order]), atol=1e-5, rtol=0)
        weights = torch.full((14, 14), 1 / 14)             # of equal words: nothing tells them apart
        """,
        "Attention sees a bag of words. Each of the following pages breaks that in its own way. Their pictures are of a row "
        "of equal words: what differs is the position alone.",
        "When order has no meaning: sets, tables, points.",
    ),
    Entry(
        "position", "sinusoidal", "Sinusoidal", ("Sinusoidal",),
        "P[i, 2m] = sin(i / 10000^(2m/d)),   P[i, 2m+1] = cos(i / 10000^(2m/d))",
        """
        import torch, regard
        from regard.nn import Sinusoidal

        same = torch.zeros(1, 14, 32)          # equal words
        x = 2 * Sinusoidal(32)(same)
        weights = regard.attention_weights(x, x)[0]
        print(weights[7].topk(3).indices)      # itself and its neighbours
        """,
        "Waves of many lengths, added to the words. Any length, nothing to learn; near positions are alike.",
        "As a default that never breaks.",
    ),
    Entry(
        "position", "learned", "Learned", ("Learned",),
        "x + P,   P learned",
        """
        import torch, regard
        from regard.nn import Learned

        torch.manual_seed(0)
        position = Learned(64, 32)             # 64 positions at most
        x = position(torch.zeros(1, 14, 32)) / position.weight.std()
        weights = regard.attention_weights(x, x)[0].detach()
        """,
        "A vector for each position, like a word's. There is none beyond the last one that training saw.",
        "For short inputs of bounded length.",
        UNTRAINED,
    ),
    Entry(
        "position", "rotary", "Rotary", ("Rotary",),
        "q_i · k_j → (R_i q) · (R_j k) = q · R_(j−i) k",
        """
        import torch, regard
        from regard.nn import Rotary

        torch.manual_seed(0)
        x = torch.randn(32).expand(1, 14, 32)  # equal words
        q, k = Rotary(32)(x, x)                # layout="split" for the other convention
        weights = regard.attention_weights(q, k)[0]
        """,
        "Turns q and k by angles that grow with the position, so that their product depends on the distance only.",
        "In most language models of today; nothing is added to the words.",
    ),
    Entry(
        "position", "alibi", "ALiBi", ("Alibi",),
        "s(q, k) − m_h · |i − j|",
        """
        import torch, regard
        from regard.scores import Alibi, ScaledDot

        x = torch.zeros(4, 14, 8)              # four heads, equal words
        score = ScaledDot() + Alibi(4)
        weights = regard.attention_weights(x, x, score=score)
        """,
        "Nearer keys count more, in each head at its own rate. Nothing is learned, and longer texts than in training work.",
        "For reading further than was trained.",
    ),
    Entry(
        "position", "relative-bias", "Relative bias", ("RelativeBias",),
        "s(q, k) + b_h[j − i],   b learned",
        """
        import torch, regard
        from regard.scores import RelativeBias, ScaledDot

        torch.manual_seed(0)
        bias = RelativeBias(2, reach=4)        # beyond 4 words the last number counts
        torch.nn.init.normal_(bias.table)
        x = torch.zeros(2, 14, 8)
        weights = regard.attention_weights(x, x, score=ScaledDot() + bias).detach()
        """,
        "A learned number for each distance and head, as in T5.",
        "When the right distances are few and should be learned.",
        UNTRAINED,
    ),
]  # fmt: skip

WORDS = [
    Entry(
        "words", "one-hot", "One-hot", ("OneHot",),
        "word w → a row of V numbers: 1 at w, else 0;   times W: row w of W",
        """
        import torch
        from regard.nn import OneHot
        from regard.nn.vectors import similarity

        words = ["dog", "cat", "tree", "run", "eat"]
        module = OneHot(len(words), 4)
        ids = torch.arange(len(words))
        assert torch.equal(module(ids), module.dense(ids) @ module.weight)   # never builds the dense rows
        rows = columns = words
        weights = similarity(module.dense(ids)[:, None], module.dense(ids))  # Pearson's correlation
        print(weights[0])
        """,
        "Every word is as unlike every other: any two correlate at exactly −1/(V − 1). Whatever dogs and cats share has to be "
        "learned from nothing.",
        "As an input layer (it is the same as a learned embedding), and to see why words need vectors.",
    ),
    Entry(
        "words", "embedding", "Learned vectors", ("Embedding",),
        "word w → row w of E,   E learned",
        """
        import torch
        from regard.nn import Embedding
        from regard.nn.vectors import similarity

        torch.manual_seed(0)
        embed = Embedding(1000, 16, padding_index=0)       # scaled=True: one matrix for input and output
        x = embed(torch.randint(1, 1000, (2, 14)))
        print(x.shape, embed(torch.tensor([0])).abs().sum())
        rows = columns = [f"word {i + 1}" for i in range(14)]
        weights = similarity(x[0, :, None], x[0]).detach()
        """,
        "At first as unlike as one-hot words. Training moves together what is used alike.",
        "Nearly always. The row of padding is 0 and stays 0.",
        UNTRAINED,
    ),
    Entry(
        "words", "pretrained", "Vectors that someone trained", ("Pretrained", "Vectors", "read_vectors"),
        "Pearson(dog, cat) = 0.88 in GloVe; 0.9968 for the two below",
        """
        import torch
        from regard.nn.vectors import read_vectors, similarity

        dog, cat = torch.tensor([[0.3645, 0.9507, 0.7320, 0.5987], [0.2949, 0.7559, 0.6172, 0.4943]])
        print(round(similarity(dog, cat).item(), 4))
        vectors = read_vectors("examples/words.glove.txt")  # GloVe or word2vec, text or binary
        print(vectors.nearest("dog", 3))
        rows = columns = vectors.words
        weights = similarity(vectors.tensor[:, None], vectors.tensor)
        points = vectors.plane()                            # two directions in which they differ most
        """,
        "Words that are used alike have vectors that are alike: animals, plants and verbs fall together on the map.",
        "When there is little text of one's own. `regard.nn.Pretrained` takes them as an input layer; "
        "`regard show \"dog cat oak …\" --vectors examples/words.glove.txt --view vectors --out map.html` draws the map.",
        "18 words of GloVe (6 billion words of text, 100 numbers a word; public domain).",
    ),
]  # fmt: skip

LAYERS = [
    Entry(
        "layer", "multi-head", "Heads side by side", ("MultiHeadAttention",),
        "concat(head_1, …, head_h) W_o,   head_i = Attention(x W_q, x W_k, x W_v)",
        """
        import torch, regard
        from regard.masks import window
        from regard.nn import MultiHeadAttention
        from regard.scores import Gaussian, ScaledDot

        torch.manual_seed(0)
        scores = [ScaledDot(), ScaledDot(), Gaussian(2.0), Gaussian(2.0)]
        attend = MultiHeadAttention(16, heads=4, key_heads=2, score=scores)
        near, wide = window(1, 1), window(14, 14)
        with regard.record(torch.nn.ModuleDict({"it": attend})) as records:
            attend(torch.randn(1, 14, 16), mask=[near, wide, near, wide])
        weights = records["it"].weights()[0]
        """,
        "Each head has its own W_q, W_k, W_v, and may have its own score and its own scope: here two see only their "
        "neighbours. `key_heads` lets groups of heads share keys and values, which makes a decoder's memory smaller.",
        "Always, in Transformers. With `heads=d, d_head=1` every number of a word attends for itself.",
        UNTRAINED,
    ),
    Entry(
        "layer", "length-map", "Output of another length", ("LengthMap",),
        "b′[m, c] = Σ_i W_o[m, i, c] · b[i]",
        """
        import torch
        from regard.nn import LengthMap

        torch.manual_seed(0)
        read = LengthMap(n=14, n_out=5, d_v=8, d_out=20)   # 5 words of a vocabulary of 20, from 14 positions
        b = torch.randn(2, 14, 8)
        words = read(b, torch.tensor([14, 9])).softmax(-1)  # beyond the length: 0
        print(words.shape, words.argmax(-1))
        weights = read.w_o.abs().mean((2, 3)).detach()
        rows, columns = [f"output {m + 1}" for m in range(5)], [f"b {i + 1}" for i in range(14)]
        """,
        "A learned map from n attended positions to n′ output positions; a softmax over the vocabulary reads a word off each.",
        "When the length of the output is known. Otherwise let a decoder decide where to stop.",
        UNTRAINED + " The picture is of the mean size of W_o.",
    ),
    Entry(
        "layer", "fully-connected", "What it replaced: fully connected layers", ("FullyConnectedWindow", "FullyConnectedSequence"),
        "y_i = W [x_(i−l) … x_(i+r)],   or   [y_1 … y_n] = W [x_1 … x_n]",
        """
        import torch
        from regard.nn import FullyConnectedSequence, FullyConnectedWindow, parameter_counts

        x = torch.randn(1, 14, 8, requires_grad=True)
        for n in (10, 100, 1000):
            print(n, parameter_counts(d=64, d_out=64, n_max=n, left=5, right=5))
        near = FullyConnectedWindow(8, 8, left=2, right=2)(x)
        near = torch.stack([torch.autograd.grad(near[0, i].sum(), x, retain_graph=True)[0][0] for i in range(14)])
        weights = near.abs().sum(-1)                       # which inputs an output depends on
        """,
        "A window sees its neighbours only, and its weights grow with it. A layer over the whole sequence grows with the square "
        "of the longest one. Attention's do not grow with either.",
        "To see what attention saves.",
        "How much each output of a window of two to each side depends on each input.",
    ),
]  # fmt: skip

REVERSE = """
        def lesson(n=6, B=64):                 # letters 3 to 12, to be reversed; 1 begins, 2 ends
            x = torch.randint(3, 13, (B, n))
            begin, end = torch.full((B, 1), 1), torch.full((B, 1), 2)
            return torch.cat([x, end], 1), torch.cat([begin, x.flip(1)], 1), torch.cat([x.flip(1), end], 1)
"""

MODELS = [
    Entry(
        "model", "rnn", "RNN without attention", ("RNNEncoderDecoder",),
        "a_t = b + W h_(t−1) + U x_t,   h_t = tanh(a_t),   o_t = c + V h_t,   ŷ = softmax(o_t)",
        """
        import torch
        from regard.models.rnn import RNNEncoderDecoder

        torch.manual_seed(0)
        model = RNNEncoderDecoder(13, 13, d=16, hidden=32, cell="gru")
        source, given = torch.randint(3, 13, (1, 6)), torch.tensor([[1]])
        logits = model(source, given)
        rows, columns = ["each word written"], ["the last state", *(f"word {i + 1}" for i in range(6))]
        weights = torch.tensor([[1.0] + [0.0] * 6])
        """,
        "The decoder sees the sentence through one vector, the encoder's last state. What attention replaced.",
        "As a baseline: it falls behind as sentences grow longer.",
        "No attention is computed here: the picture says what the decoder can see.",
    ),
    Entry(
        "model", "attentive-rnn", "RNN with attention", ("AttentiveRNN",),
        "a_t = Σᵢ wᵢ hᵢ,   w = normalizer(s(H_t, h)),   word from [H_t; a_t]",
        """
        import torch, regard
        from regard.models.rnn import AttentiveRNN
        """
        + REVERSE
        + """
        torch.manual_seed(0)
        model = AttentiveRNN(13, 13, d=32, hidden=64, cell="gru", bidirectional=True)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for step in range(STEPS):              # 150 are enough
            source, given, wanted = lesson()
            loss = torch.nn.functional.cross_entropy(model(source, given).mT, wanted)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
        source, given, wanted = lesson(B=1)
        with regard.record(model.eval()) as records:
            model(source, given)
        weights = records["attention"].weights()[0]
        rows, columns = ([chr(94 + i) if i > 2 else "</s>" for i in x[0].tolist()] for x in (wanted, source))
        """,
        "Every encoder state reaches the decoder, which looks at them anew for each word. Trained here for a few seconds to "
        "reverse a row of letters: it reads from right to left.",
        "For short sequences, alignments that can be read, and to learn how it all began.",
    ),
    Entry(
        "model", "transformer", "Transformer", ("Transformer",),
        "x + Attention(x),  x + FeedForward(x),  repeated;  the decoder attends to the encoder",
        """
        import torch, regard
        from regard.models.transformer import Transformer
        """
        + REVERSE
        + """
        torch.manual_seed(0)
        model = Transformer(13, 13, d=32, heads=2, layers=1)
        optimizer = torch.optim.Adam(model.parameters(), 5e-3)
        for step in range(STEPS):              # 150 are enough
            source, given, wanted = lesson()
            loss = torch.nn.functional.cross_entropy(model(source, given).mT, wanted)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
        source, given, wanted = lesson(B=1)
        with regard.record(model.eval(), only="*cross_attention") as records:
            model(source, given)
        weights = records[-1].weights()[0].mean(0)
        rows, columns = ([chr(94 + i) if i > 2 else "</s>" for i in x[0].tolist()] for x in (wanted, source))
        """,
        "Self-attention reads, causal self-attention writes, cross-attention joins them. Any score, normalizer, mask and "
        "position of this gallery fits into it. Trained as on the page before.",
        "Nearly always.",
    ),
    Entry(
        "model", "transformer-encoder", "Transformer that reads", ("TransformerEncoder",),
        "tokens → one state for each",
        """
        import torch, regard
        from regard.models.transformer import TransformerEncoder
        from regard.normalizers import Entmax

        torch.manual_seed(0)
        encoder = TransformerEncoder(100, d=32, heads=4, layers=2, position="rotary", normalizer=Entmax(1.5))
        with regard.record(encoder.eval()) as records:
            encoder(torch.randint(100, (1, 14)))
        weights = records[0].weights()[0]
        """,
        "Every word sees every word. A layer on top makes labels: for each word (tagging) or for all (classification).",
        "To tag, to classify, to fill in blanks.",
        UNTRAINED,
    ),
    Entry(
        "model", "transformer-decoder", "Transformer that writes", ("TransformerDecoder",),
        "p(word_t | word_1 … word_(t−1))",
        """
        import torch, regard
        from regard.models.decoding import sample
        from regard.models.transformer import TransformerDecoder

        torch.manual_seed(0)
        model = TransformerDecoder(100, d=32, heads=4, layers=2).eval()
        with regard.record(model) as records:
            model(torch.randint(3, 100, (1, 14)))
        weights = records[0].weights()[0]
        """,
        "A language model: each word from those before it. What it computed stays in a cache, so that a step costs one row.",
        "To continue texts.",
        UNTRAINED,
    ),
    Entry(
        "model", "autoencoder", "Autoencoder", ("Autoencoder",),
        "x → a few latent vectors → x",
        """
        import torch, regard
        from regard.models.autoencoder import Autoencoder

        torch.manual_seed(0)
        model = Autoencoder(50, d=32, heads=2, layers=1, slots=4, d_latent=8).eval()
        words = torch.randint(3, 50, (1, 14))
        print(model.encode(words).shape)       # 14 words of 32 numbers, now 4 of 8
        with regard.record(model) as records:
            model.encode(words)
        weights = records[-1].weights()[0].mean(0)
        rows, columns = [f"latent {i + 1}" for i in range(4)], [f"word {i + 1}" for i in range(14)]
        """,
        "Learned queries look at the sentence; what they find is all that the decoder gets. Trained on damaged sentences it "
        "restores them.",
        "To compress and to denoise.",
        UNTRAINED,
    ),
    Entry(
        "model", "captioner", "Captioner: text over image patches", ("Captioner",),
        "words attend to the patches of an image",
        """
        import torch, regard
        from regard.models.captioner import Captioner, draw

        torch.manual_seed(0)
        model, scene = Captioner().eval(), draw(1, seed=1)
        with regard.record(model, only="*cross_attention") as records:
            model(scene.images, scene.captions[:, :-1])
        weights = records[-1].weights()[0].mean(0)
        rows = [f"word {i + 1}" for i in range(weights.shape[0])]
        columns = [f"patch {i + 1}" for i in range(weights.shape[1])]
        """,
        "Cross-attention between two kinds of input: each word of a caption looks at the patches of an image.",
        "`python -m benchmarks.captions` trains it, and measures how much of its attention falls on the shape it names.",
        UNTRAINED,
    ),
]  # fmt: skip

TASKS = [
    Entry(
        "task", "translate", "Translate", ("translate",),
        "text → text; the model decides the length",
        """
        from regard import pretrained

        model = pretrained.load("MODEL")
        answer = model("The black cat ate the mouse.", beam=4)
        print(answer.output, answer.confidence)
        attended = model.attended(answer)                  # every layer, as drawn here
        """,
        "Each word that is written looks at the words that were read: black cat turns into chat noir, and ate holds for two "
        "words, a mangé.",
        "`regard translate \"The black cat ate the mouse.\" --to fr --show`",
    ),
    Entry(
        "task", "tag", "Tag", ("tag",),
        "one label for each word",
        """
        from regard import pretrained

        model = pretrained.load("MODEL")
        answer = model("She quickly read the long letter.")
        for word, label, probability in answer.words:
            print(word, label, round(probability, 2))
        attended = model.attended(answer)                  # every layer, as drawn here
        """,
        "Parts of speech, names, anything with a label for each word.",
        "`regard tag \"She quickly read the long letter.\" --show`",
    ),
    Entry(
        "task", "classify", "Classify", ("classify",),
        "one label for the text",
        """
        from regard import pretrained

        model = pretrained.load("MODEL")
        answer = model("A warm, funny and moving film.")
        print(answer.output, answer.confidence)
        attended = model.attended(answer)                  # every layer, as drawn here
        """,
        "A learned query attends to all words; what it looked at can be seen.",
        "`regard classify \"A warm, funny and moving film.\" --show`",
    ),
    Entry(
        "task", "fill", "Fill in", ("fill",),
        "the word behind ____, from both sides",
        """
        from regard import pretrained

        model = pretrained.load("MODEL")
        answer = model("When he saw his owner, the dog was ____ , so he wagged his tail", n_best=5)
        print(answer.blanks[0])
        attended = model.attended(answer)                  # every layer, as drawn here
        """,
        "What a blank looked at before it was filled.",
        "`regard fill \"… the dog was ____ , so he wagged his tail\" --n-best 5 --show`",
    ),
    Entry(
        "task", "denoise", "Restore", ("denoise",),
        "a damaged text → the whole one",
        """
        from regard import pretrained

        model = pretrained.load("MODEL")
        answer = model("cat The ____ on mat the")
        print(answer.output)
        attended = model.attended(answer)                  # every layer, as drawn here
        """,
        "Words missing, hidden or out of order; through a latent that is smaller than the text.",
        "`regard denoise \"cat The ____ on mat the\"`",
    ),
    Entry(
        "task", "generate", "Go on", ("generate",),
        "each word from those before it",
        """
        from regard import pretrained

        model = pretrained.load("MODEL")
        answer = model("Once upon a time", temperature=0.8, seed=1, longest=20)
        print(answer.output)
        attended = model.attended(answer)                  # every layer, as drawn here
        """,
        "Greedy, by beam search or by drawing; the same seed draws the same text.",
        "`regard generate \"Once upon a time\" --seed 1`",
    ),
]  # fmt: skip

ENTRIES = [*FIRST, *SCORES, *NORMALIZERS, *DRAWN, *MASKS, *POSITIONS, *WORDS, *LAYERS, *MODELS, *TASKS]
