"""The candidates indexed for quick placement: the answers of `rule.py`, by lanes and by columns.

docs/PLACEMENT.md says what always holds between the parts. A number beside a trick, such as 1.17 ×, is the time of the
benchmark without the trick, over that with it.
"""
