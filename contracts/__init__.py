"""What crosses a process: messages, subjects, errors, codec, and the client agents use.

Glossary, used with these meanings everywhere:

memory      a text an agent wrote, with its times, statements, entities, relations and edges
statement   subject, predicate, object, asserted by a memory
entity      a named thing that memories mention
relation    a typed link between two entities, asserted by a memory
edge        a typed link from one memory to another
project     the tenant; nothing crosses from one project to another
cue         what a recall asks
lane        one way of finding memories: semantic, lexical or graph
hit         an id with a lane's own score; scores of two lanes are not comparable
candidate   a fused hit
member      a candidate that belongs to the answer
position    a sequence number in the log
schema      the vocabulary that a project declared
tombstone   the log record that says a memory is forgotten
"""
