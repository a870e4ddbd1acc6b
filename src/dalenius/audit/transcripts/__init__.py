"""What a whole release shows of one unit: the same noisy transcript on two neighbours, and what it costs.

A release is a row of mechanisms: keys are found, limits are searched, measures are counted, each chosen by what came
out before. Here it runs once for real on a made-up table, and everything that came out is written down. Then it runs on
the neighbour, where every mechanism gives what it gave before: so the same mechanisms run, on other integers. How far
those are apart is what the transcript can show of the unit, and what was charged must cover it.

    tape     writes down what mechanisms give, and gives it again
    loss     adds up how far apart the integers are, in the noise's own measure
    sides    the check for the fuzzer (`audit fuzz --what transcript`)
    lives    homes that live on: refreshes, other policies, new people, periods (`audit fuzz --what lives`)
"""
