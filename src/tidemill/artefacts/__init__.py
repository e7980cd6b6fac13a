"""Content-addressed bytes, on local disk or in an S3-compatible store, behind one interface."""
