"""How cases come in, and what is said of them to who sent them: files, HTTP, lakes, new
versions.
"""
