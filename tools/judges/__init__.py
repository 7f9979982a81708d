"""Whether a network gives the right answer on real data, whatever engine runs it: one file for each kind of data.

A judge is ``judge(run, data, quick) -> Verdict``: ``run`` maps inputs by name to outputs by name, ``data`` is the
folder that tools/fetch_models.py fills, ``quick`` asks for two or three inferences (emulators are slow).
"""
