"""Lines of columns, as Slurm prints them."""

from collections.abc import Sequence

from tenfold.cli.output import print_line


def print_columns(
    titles: Sequence[str], rows: Sequence[list[str]], right: Sequence[int], *, has_header: bool
) -> None:
    """Print aligned columns; those at the places of `right` end at their right edge."""
    lines = [list(titles), *rows] if has_header else list(rows)
    widths = [max((len(line[place]) for line in lines), default=0) for place in range(len(titles))]
    for line in lines:
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print_line(" ".join(cells).rstrip())
