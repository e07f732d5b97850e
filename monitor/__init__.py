"""gpuwarden: monitoring and alerting for GPU clusters. See DESIGN in docs/ for how the packages fit together."""

__version__ = "0.1.0"
