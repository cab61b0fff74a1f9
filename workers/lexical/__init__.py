"""The lexical lane: memories found by the words, names and ids they contain."""
