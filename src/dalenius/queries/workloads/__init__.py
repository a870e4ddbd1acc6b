"""Workloads: many questions at one price, one charge and one look, whose answers fit one another.

reading      the questions, from a file, a list, or JSON
attributes   what they tell rows apart by, and the classes of rows that follow
comparisons  conditions on one expression, as classes see them
linear       each question as sums over these classes
blocks       what is measured for questions over the same rows, and what one unit changes in that
planning     what is measured instead of the questions themselves
cells        the cells of a block, and the strategy that reads them
sharing      each measure's share of the price
marginals    tables of a few attributes, where there are too many cells
measuring    the look, and what is stored
showing      one release per question, from what is stored
expecting    what may be expected of answers, before paying
known        a question of a paid workload, asked alone
kind         all of it as a kind of release

What is measured is chosen in `measuring.strategies`, from public sizes alone.
"""
