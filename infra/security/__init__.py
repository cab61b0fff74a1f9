"""A secured bus: keys, certificates, and who may do what. `memlane security` is the door to it."""
