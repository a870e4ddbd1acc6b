"""An owner's check of synthetic rows against the real ones: what they are good for, and what attacks find in them.

    reading      real rows, rows held out, and synthetic rows, all as codes
    rehearsing   a table made for the check alone, from those who are not held out
    nearness     how near each of some rows is to the synthetic ones
    attacks      who was in the table; what a column says of somebody; which rows are there again
    checking     the whole, with what may be said of it

What comes out follows from the raw rows, without noise. It is for the owner, on the owner's terminal: it is printed and
kept nowhere. No server, no analyst and no report has a way to it.
"""
