"""The toy policy for tic-tac-toe: 70,000 parameters that see the board as three words and answer with one word.

`python -m t2t_baselines.tiny.tictactoe.warmup --out DIR` remakes it in seconds.
"""
