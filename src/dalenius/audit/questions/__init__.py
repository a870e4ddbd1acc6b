"""An owner's audit of one question on the real table: which ε do its noisy answers show?

    neighbours   the table without one unit, as an engine; the unit's name never leaves the engine
    sampling     the release again and again, through the same code as a real one, and what is looked at in it
    auditing     the whole, with what may be said of it

Whoever calls this reads raw rows: it is for the owner, on the owner's machine, in this process. No server, no analyst
and no report has a way to it.
"""
