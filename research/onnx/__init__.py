"""Models as ONNX graphs, which the package loads without torch: ``python -m research.onnx``."""
