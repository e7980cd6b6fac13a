"""Commands about work: order it, follow it, fetch its results, check its proofs."""
