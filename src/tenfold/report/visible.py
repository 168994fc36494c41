"""Show control and bidirectional characters instead of obeying them.

A terminal obeys escape sequences in what it prints: they move the cursor, change the title, hide
text or answer as if typed. Bidirectional and invisible characters make a text read as another one.
Text from users, jobs and files therefore passes through here on its way to a screen or a log. The
form is that of JSON and TOML, so escaped data is still the same data.
"""

import re

_HARMFUL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL and C1.
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff"  # Half a character, which no terminal can show.
    r"\U000e0000-\U000e007f"  # Invisible copies of ASCII.
)
_IN_TEXT = re.compile(f"[{_HARMFUL}]")
_IN_LINE = re.compile(f"[{_HARMFUL}\\t\\n]")
_PLAIN_MOST = 0xFFFF
_NAMED = {"\n": "\\n", "\t": "\\t"}


def visible(text: str) -> str:
    """Return a text of several lines with harmful characters escaped, as `\\u001b`."""
    return _IN_TEXT.sub(_escaped, text)


def visible_line(text: str) -> str:
    """Return a text as one line: newlines and tabs are escaped too."""
    return _IN_LINE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    letter = match[0]
    if letter in _NAMED:
        return _NAMED[letter]
    number = ord(letter)
    if number <= _PLAIN_MOST:
        return f"\\u{number:04x}"
    # Two halves, as JSON requires above the first 65,536 characters.
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
