"""SQL over released values: windows, QUALIFY, DISTINCT, outer SELECTs, UNION ALL. All of it is free.

A question such as `SELECT region, RANK() OVER (ORDER BY COUNT(*)) … GROUP BY region` is two: an inner one, of keys and
aggregates alone, which is planned, priced, charged and stored as any other is; and an outer part, which reads nothing
but what that one released, and public tables. Other outer parts over the same inner question cost nothing.

Guarantee:
    That of the inner questions. The outer part is a function of what they released, of public tables and of its own
    text: post-processing. Neighbouring tables, events and charges are those of the inner questions.
"""
