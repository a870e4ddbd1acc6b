"""Answers that are already known: a question that follows from what its asker has paid for is free.

written    plans as JSON, and back
sealed     what was asked, kept with its answer for nobody but this home
sources    what the asker's own releases have measured
following  what follows from one measure alone: groups added up
combining  what follows from several of them together, by least squares
deriving   a question's numbers, by either way
workloads  what follows from a workload
answers    these as an answer, with its errors
deciding   whether that is as good as what would be paid for
sharpening an answer that was paid for, combined with earlier ones

Guarantee:
    Everything here is post-processing of releases that were charged to this asker: a function of their noisy numbers,
    of plans and of public facts. Nothing is charged, and nothing is looked at but the ledger. Others' releases are
    never read, nor whether there are any.
"""
