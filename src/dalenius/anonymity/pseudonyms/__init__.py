"""Pseudonyms: what says who somebody is, replaced by something else. It is not enough, and says so.

keyed    `hashing`: HMAC-SHA256 with a key
lookup   `lookup`: drawn by chance, kept in a table
tokens   `tokens`: FF1, a permutation of all values of one format
"""

from dalenius.anonymity.pseudonyms.columns import METHODS, NOT_DONE, Pseudonymized, pseudonymize

__all__ = ["METHODS", "NOT_DONE", "Pseudonymized", "pseudonymize"]
