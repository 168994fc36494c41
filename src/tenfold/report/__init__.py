"""How results look: numbers, sentences for reasons, charts and HTML pages.

Belongs here: formatting of figures, one template per reason code (reasons), SVG and terminal
charts (charts), reports (pages), Prometheus alarm rules.
Does not belong here: computing the figures, or printing them (cli).
"""
