"""What things cost in time, bytes, watts and dollars: pure functions, arrays in and out.

Belongs here: fabrics and failure domains, training steps, serving, operations, growth laws.
Does not belong here: choosing between options (decide), reading files (files), or numbers about
hardware (facts), which come in as arguments.
"""
