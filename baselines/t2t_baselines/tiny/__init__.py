"""The toy policy that shows the pipeline: a causal language model of half a million parameters in the big one's architecture.

Its numbers show that the loop works and say nothing about language models. `python -m t2t_baselines.tiny.warmup` remakes it.
"""
