"""WHAT attention is: scores, normalizers, masks, and the one formula that joins them."""
