"""gpuwarden: monitoring and alerting for GPU clusters. `docs/architecture.md` describes how the packages fit together."""

__version__ = "0.1.0"
