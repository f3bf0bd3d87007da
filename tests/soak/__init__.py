"""Promises tried again and again, from seeds, for as long as there is time: ``make soak``.

A proof is one promise and a round that tries it. The tests beside the proofs run a few rounds of each; the soak runs
rounds until its time is used up, and writes what it tried into ``docs/reliability.md``.
"""
