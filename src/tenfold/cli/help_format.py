"""Print help with paragraphs wrapped at the width of the terminal, not as in the source."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.help import DefaultFormatter, HelpPanel, InlineText
    from rich.console import Console, ConsoleOptions


class HelpFormat:
    """The default help format, with line breaks inside paragraphs removed.

    The default format is imported on first use, because most commands print no help.
    """

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print a panel of commands or options."""
        _default()(console, options, panel)

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: object) -> None:
        """Print the usage line."""
        _default().render_usage(console, options, usage)

    def render_description(
        self, console: "Console", options: "ConsoleOptions", description: "InlineText"
    ) -> None:
        """Print the description of a command."""
        from rich.text import Text  # noqa: PLC0415

        text = getattr(description, "primary_renderable", None)
        if isinstance(text, Text):
            description.primary_renderable = Text(one_line_per_paragraph(text.plain))
        _default().render_description(console, options, description)


def one_line_per_paragraph(text: str) -> str:
    """Return text without the line breaks inside its paragraphs."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _default() -> "DefaultFormatter":
    from cyclopts.help import DefaultFormatter  # noqa: PLC0415

    return DefaultFormatter()
