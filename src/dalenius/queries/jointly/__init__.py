"""Questions that several curators answer together, none of which shows its part.

    planning    what is asked, from one party's policy and ledger alone
    terms       what all parties must say alike before anything is charged
    kind        the release kind: charged in each party's ledger, shown as any answer

How parties meet and how sums are opened is `dalenius.joint`, which knows neither tables nor ledgers; `kind` is handed
a `Table` (in the sense of one to sit around) that does it.
"""
