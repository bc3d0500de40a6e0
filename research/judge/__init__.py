"""The local judge: training of its adapter, labelled conclusions, and cross-validation."""
