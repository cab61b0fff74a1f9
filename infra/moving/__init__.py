"""Memories out of a project and into one: files, and what carries them."""
