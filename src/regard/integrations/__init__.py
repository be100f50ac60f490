"""regard inside other libraries: torch's own modules and functions, Hugging Face transformers."""
