"""Private training of linear models.

    task, features   what is learned, from which columns, by declarations alone
    models/          one loss per file
    rules, recipe    the defaults; everything public that decides about a training
    units            rows of units as numbers, in a room of public size
    drawing          which units are in a step, by secure bits
    gradients        sums of clipped gradients, as exact whole numbers
    sgd              steps with noise, and checkpoints
    fitted           a trained model

Nothing here charges, stores or reads a table.
"""
