"""Words that carry no topic in an English text."""

from __future__ import annotations

_ARTICLES = "a an the this that these those such some any each every either neither no"
_PRONOUNS = """
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves one someone anyone everyone something anything everything nothing
"""
_VERBS = """
am is are was were be been being do does did doing done have has had having can could will would shall should may might
must ought isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't cannot couldn't won't wouldn't
shan't shouldn't mustn't i'm you're we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd i'll
you'll he'll she'll it'll we'll they'll
"""
_LINKS = """
and or but nor so yet if then else than as because while although though until unless since of at by for with about
against between into through during before after above below to from up down in out on off over under again further
once upon within without per via
"""
_ADVERBS = "not only just also too very more most much many few both all own same other there here now ever please"
_QUESTIONS = "what which who whom whose when where why how"

STOP_WORDS = frozenset(" ".join((_ARTICLES, _PRONOUNS, _VERBS, _LINKS, _ADVERBS, _QUESTIONS)).split())

#: What people say to be polite, or to say nothing.
FILLER = frozenset(
    "ok okay thanks thank thx yes yeah yep no nope sure hi hello hey bye lol great cool nice fine well right got hmm "
    "uh oh ah please welcome sounds good done alright awesome perfect wow um".split()
)
