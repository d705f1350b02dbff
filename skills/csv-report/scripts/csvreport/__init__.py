"""Reading, profiling and charting of CSV tables, in that order of modules.

reading → values → columns → summary, and plan → aggregate → charts → svg.
"""
