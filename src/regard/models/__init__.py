"""Whole models, from embeddings to words: RNN and Transformer encoder-decoders, autoencoders, a captioner.

Every model that writes shares one way of being stepped, which `decoding` drives:

    state = model.begin(source, lengths)      encode; the state holds one row per batch element
    logits, state = model.step(token, state)  one more token for every row: (B,) -> (B, V)
    state.select(rows)                        keep these rows in this order (beam search)

and one way of being trained: `model(source, target, lengths) -> logits`, where target begins with the
begin-of-sentence token and logits[:, t] predict the token after target[:, t].
"""
