"""Everything that parses: fleet files, model configs, cluster exports, catalogues.

What a file says comes back as records of `model`; what is wrong with it comes back
as findings with a line, or as one `InputError`.
"""
