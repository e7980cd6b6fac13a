"""Proofs of products of matrices: what is claimed, how it is checked, how surely, and what a third party can replay."""
