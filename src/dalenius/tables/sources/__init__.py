"""Where the data is, and whether it changed.

fingerprint   which files a source means, what they are, and whether they are still the same
compressed    whether a compressed file is whole, and no larger than it may be
homes         no file of a home is a source, and none is written over
"""
