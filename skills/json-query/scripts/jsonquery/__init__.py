"""A subset of jq.

lexer → parser → access and flow (the nodes), over values; the functions are in scalars, texts, containers, streams and
paths, registered in catalogue.
"""
