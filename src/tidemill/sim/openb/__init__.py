"""The inflation experiment on a cluster's list, and rivals to compare with."""
