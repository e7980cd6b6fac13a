"""Commands about artefacts and models."""
