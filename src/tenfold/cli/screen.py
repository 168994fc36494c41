"""Text and consoles for a terminal: harmful characters are escaped wherever they come from."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text as RichText

from tenfold.report.visible import visible


class Text(RichText):
    """Styled text. Escaped before the layout, so columns keep their width."""

    def __init__(self, text: str = "", *words: Any, **named: Any) -> None:
        super().__init__(visible(text), *words, **named)


class ScreenConsole(Console):
    """A console that prints no control character except its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the parts of something to print; those of text are escaped."""
        for part in super().render(renderable, options):
            if part.control or (text := visible(part.text)) == part.text:
                yield part
            else:
                yield Segment(text, part.style)
