"""What models are used for: data and tokenizers, and the tasks that are trained and run on them."""
