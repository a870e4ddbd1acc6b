"""Computing together: parties that show one another nothing but the result.

    fields, binary              numbers modulo 2^61 − 1 (and smaller), bits in GF(2^k), many at a time
    streams                     random numbers from keys: AES in counter mode
    shamir, decoding, shares    secrets in shares; whose share is wrong
    prss                        random shares without a word
    frames, links, meeting      what travels, what a broken connection loses (nothing), who may call
    config                      a party: its card, its keys, its partners
    run                         rounds among parties
    bgw, bits, comparing        share, multiply, open; comparisons, truncation, small sorts
    bids, auction, bidding      a double auction of sealed bids
    tasks, serving              what a party takes part in, and how it is called
    rehearsal                   several parties on one machine

What security is reached is in each module's docstring and on the page "Computing together". Nothing here touches a
protected table or a ledger.
"""
