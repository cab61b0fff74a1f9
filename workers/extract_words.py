"""Which capitalised words are ordinary: the lists behind the extractor."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CALENDAR = _words(
    """
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun january
    february march april may june july august september october november december jan feb mar apr jun jul aug sep
    sept oct nov dec
    """
)
#: Never part of a name.
FUNCTION = _words(
    """
    i i'm i've i'll i'd im a an the this that these those he she it we you they him her us them his hers its our
    ours your yours my mine their theirs me it's he's she's we're you're they're that's there's what's let's and
    or but if so because as at by for from in into of off on onto over to up with without is are was were be been
    being am do does did has have had not no nor yes who whom whose which what when where why how there here then
    than too very don't doesn't didn't isn't aren't wasn't can't won't couldn't wouldn't shouldn't we've we'll
    you've you'll they've who's where's how's here's ok okay hi hello hey dear thanks thx
    """
)
#: Capitals that abbreviate a remark, a time or a common noun.
SHORTHAND = _words(
    """
    todo fyi asap eta eod eow btw imo imho afaik tbd tba wip nb ps re fw fwd cc bcc faq api url uri id ids ui ux
    pr prs am pm utc gmt cet cest est pst tl dr mr mrs ms prof qa hr cpu gpu ram sla kpi okr csv pdf html http
    https json sql ssl tls dns vpn sso usb q1 q2 q3 q4 p1 p2 p3 p0 lgtm ooo ceo cto cfo coo vp svp rip omg lol wtf
    """
)
#: Ordinary at the start of a sentence; in the middle of one a capital makes them a name.
COMMON = _words(
    """
    about above account across action actually add added after again agenda all almost already also although
    always another answer any anyone anything apparently apply approve around ask asked assign attach avoid away
    back based basically before begin below besides better between big both bring bug build buy call called can
    cancel careful case cause change check choose clean clear click close closed come compare confirm confirmed
    consider contact contract copy correct could create current currently customer customers data day days decide
    decided decision delay delete deploy describe despite detail details did discuss document done down draft drop
    due during each early easy either email end enjoy enough ensure error even eventually ever every everybody
    everyone everything example except expect explain extra fact fail few file final finally find first fix fixed
    follow forget former forward found free full fun further general get give given go good got great guess had
    half happy hard have he'll heard help hence her high hold honestly hope however idea imagine important include
    incident indeed inform inside instead internal invite invoice issue join just keep kind kindly know known last
    late lately later latest learn leave less let like likely link list little live load local log long look lots
    love lunch mail main make man many maybe mean meanwhile meet meeting mention merge message might more moreover
    morning most mostly move moved much must name near nearly need neither never new news next nice nobody none
    nope normally note notes nothing notice now number obviously often old once one only open option order orders
    other others otherwise our out own page paid part pass past pay people per perhaps phone pick place plan
    please plus point possibly post press prepare previously price print priority probably problem project promise
    proper provide pull push put question questions quick quickly quite rather reach read ready really reason
    recall recap receive recently refund regarding release remember remind remove reminder reopen reopened replace
    reply report request resolved restart result results retry return review right root run same save say says
    schedule second section see seems seen send sent set several shall share she'll ship short should show shut
    side similarly simple since small some somebody someone something sometimes soon sorry sounds speak special
    spend start started state status stay step steps still stop story subject such suddenly summary support
    suppose sure sync take talk task team teams tell test tests thank theirs things think third though thought
    three through thus ticket tickets time times tip title today together tomorrow tonight took total toward
    travel tried true try turn turns twice two type ultimately under unfortunately unless unlike until update
    updated updates upon urgent use used user users usually verify version via view visit wait want warning was
    watch way week weeks welcome well went whatever whenever whether while who whoever whole will wish within
    wonder word words work working works would wow write wrong yeah year years yep yesterday yet you young zero
    background context goal goals risk risks owner owners author cc date deadline decisions attendees participants
    impact workaround fixes feature features server servers service database payment payments delivery shipment
    package parcel weather coffee dinner breakfast music family told gave raised took made
    """
)
_NAMELY = re.compile(r"(?:ly|ing|ed|tion|sion|ment|ness|able|ible|ful|less|ous)$")


def ordinary(word: str) -> bool:
    """Whether a capitalised word at the start of a sentence is more likely a word than a name."""
    low = word.lower()
    if low in COMMON or low in FUNCTION or low in CALENDAR or low in SHORTHAND:
        return True
    return low.removesuffix("s") in COMMON or (len(low) > 4 and low.isalpha() and bool(_NAMELY.search(low)))
