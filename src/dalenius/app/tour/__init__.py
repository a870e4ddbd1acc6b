"""The tour that `dalenius demo` gives: what is computed for it. How it is shown is the command's business."""
