"""Which English words are forms of one another: by their endings, and by a list of those that follow no rule."""

from collections import defaultdict

VERBS = """
be am is are was were been being; have has had; do does did done; say said; go goes went gone; get got gotten; make
made; know knew known; think thought; take took taken; see saw seen; come came; give gave given; find found; tell
told; become became; leave left; feel felt; put; bring brought; begin began begun; keep kept; hold held; write wrote
written; stand stood; hear heard; let; mean meant; set; meet met; run ran; pay paid; sit sat; speak spoke spoken; lie
lay lain; lead led; read; grow grew grown; lose lost; fall fell fallen; send sent; build built; understand understood;
draw drew drawn; break broke broken; spend spent; cut; rise rose risen; drive drove driven; buy bought; wear wore
worn; choose chose chosen; seek sought; throw threw thrown; catch caught; deal dealt; win won; forget forgot
forgotten; lay laid; sell sold; fight fought; teach taught; eat ate eaten; sing sang sung; strike struck stricken;
hang hung; shake shook shaken; ride rode ridden; feed fed; shoot shot; drink drank drunk; hit; arise arose arisen; fly
flew flown; spread; sleep slept; cause; hurt; swim swam swum; blow blew blown; ring rang rung; bear bore borne born;
bind bound; bite bit bitten; bleed bled; breed bred; burn burnt; burst; cast; cling clung; cost; creep crept; dig dug;
dream dreamt; flee fled; fling flung; forbid forbade forbidden; foresee foresaw foreseen; forgive forgave forgiven;
freeze froze frozen; grind ground; hide hid hidden; kneel knelt; lean leant; leap leapt; learn learnt; lend lent;
light lit; mistake mistook mistaken; overcome overcame; prove proven; quit; rid; saw sawn; sew sewn; shine shone;
shrink shrank shrunk; shut; sink sank sunk; slay slew slain; slide slid; smell smelt; sow sown; spell spelt; spill
spilt; spin spun; spit spat; split; spoil spoilt; spring sprang sprung; steal stole stolen; stick stuck; sting stung;
stink stank stunk; stride strode stridden; string strung; strive strove striven; swear swore sworn; sweep swept; swell
swollen; swing swung; tear tore torn; thrust; tread trod trodden; undergo underwent undergone; undertake undertook
undertaken; upset; wake woke woken; awake awoke awoken; weave wove woven; weep wept; wind wound; withdraw withdrew
withdrawn; withstand withstood; wring wrung; abide abode; behold beheld; bend bent; beseech besought; bid bade bidden;
dwell dwelt; forsake forsook forsaken; can could; will would; shall should; may might
"""
NOUNS = """
man men; woman women; child children; foot feet; tooth teeth; goose geese; mouse mice; louse lice; ox oxen; person
people; die dice; penny pence; knife knives; wife wives; life lives; leaf leaves; half halves; self selves; shelf
shelves; wolf wolves; calf calves; loaf loaves; thief thieves; sheaf sheaves; elf elves; hoof hooves; scarf scarves;
wharf wharves; gentleman gentlemen; datum data; medium media; phenomenon phenomena; criterion criteria; analysis
analyses; crisis crises; basis bases; thesis theses; hypothesis hypotheses; axis axes; index indices; matrix matrices;
stimulus stimuli; nucleus nuclei; radius radii; alumnus alumni; formula formulae; brother brethren
"""
OTHERS = """
good well better best; bad badly ill worse worst; far farther farthest further furthest; little less least; much many
more most; old elder eldest; late later latter latest last; i me my mine myself; he him his himself; she her hers
herself; it its itself; we us our ours ourselves; they them their theirs themselves; you your yours yourself; this
these; that those; who whom whose; a an
"""
VOWELS = frozenset("aeiouy")
SHORTEST = 2  # letters that are left when an ending goes


def _irregular() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for group in ";".join((VERBS, NOUNS, OTHERS)).split(";"):
        lemma, *forms = group.split()
        for form in (lemma, *forms):
            found[form].add(lemma)
    return {form: frozenset(lemmas) for form, lemmas in found.items()}


IRREGULAR = _irregular()


def lemmas(word: str) -> frozenset[str]:
    """What an English word may be a form of, itself among them, whether or not there is such a word."""
    word = word.casefold().removesuffix("'s").removesuffix("’s")
    found = {word} | IRREGULAR.get(word, frozenset())
    for ending in ("s", "ed", "ing", "er", "est", "ly"):
        stem = word.removesuffix(ending)
        doubled = ending == "s" and stem.endswith("s")  # kiss
        if stem != word and len(stem) >= SHORTEST and VOWELS & set(stem) and not doubled:
            found |= _before(stem, ending)
    return frozenset(found)


def is_form_of(one: str, other: str) -> bool:
    """Whether two words may be forms of one: banks and banked, went and going, quiet and quietly."""
    return not lemmas(one).isdisjoint(lemmas(other))


def _before(stem: str, ending: str) -> set[str]:
    """What an ending may have been put to: hop, hope, hurry or church."""
    found = {stem}
    if ending != "ing" and stem.endswith("ie"):
        found.add(stem[:-2] + "y")  # carries
    if ending in ("ed", "er", "est", "ly") and stem.endswith("i"):
        found.add(stem[:-1] + "y")  # carried, happily
    if ending == "s":
        return found | ({stem[:-1]} if stem.endswith(("se", "xe", "ze", "che", "she", "oe")) else set())
    if ending == "ing" and stem.endswith("y"):
        found.add(stem[:-1] + "ie")  # lying
    if stem[-1] == stem[-2] and stem[-1] not in "aeiou":
        found.add(stem[:-1])  # stopped
    return found | {stem + "e", stem + "le"} if ending == "ly" else found | {stem + "e"}
