"""Scheduled TensorIR in, object files and a memory plan out."""
