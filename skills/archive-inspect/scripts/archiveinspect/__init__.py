"""Looking into archives without unpacking them.

streams → tar or zipdir (entries) → checks and links (findings) → report.
"""
