"""gpuwarden: monitoring and alerting for GPU clusters. `docs/architecture.md` describes the packages."""

__version__ = "0.1.0"
