"""Hindi, Marathi, Gujarati, Kannada and Tamil: each construction in a sentence that was written by hand."""

from __future__ import annotations

import pytest

from regard.tasks.corpora import realiser
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Place, Sentence, links

LANGUAGES = ("hi", "mr", "gu", "kn", "ta")
GIRL, BOY, CHILD = NounPhrase("girl"), NounPhrase("boy"), NounPhrase("child", "a")
HORSES, DOG = NounPhrase("horse", "two", True, ("big", "black")), NounPhrase("dog")

# A meaning, and what it is in each language, in the order above.
SAID = [
    (Clause(GIRL, "see", "past", BOY), "लड़की ने लड़के को देखा।", "मुलीने मुलाला पाहिले.", "છોકરીએ છોકરાને જોયો.", "ಹುಡುಗಿ ಹುಡುಗನನ್ನು ನೋಡಿದಳು.", "சிறுமி சிறுவனைப் பார்த்தாள்."),
    (Clause(BOY, "see", "past", GIRL), "लड़के ने लड़की को देखा।", "मुलाने मुलीला पाहिले.", "છોકરાએ છોકરીને જોઈ.", "ಹುಡುಗನು ಹುಡುಗಿಯನ್ನು ನೋಡಿದನು.", "சிறுவன் சிறுமியைப் பார்த்தான்."),
    (Clause(BOY, "read", "past", NounPhrase("book", "a")), "लड़के ने एक किताब पढ़ी।", "मुलाने एक पुस्तक वाचले.", "છોકરાએ એક પુસ્તક વાંચ્યું.", "ಹುಡುಗನು ಒಂದು ಪುಸ್ತಕವನ್ನು ಓದಿದನು.", "சிறுவன் ஒரு புத்தகத்தைப் படித்தான்."),
    (Clause(CHILD, "eat", "past", NounPhrase("egg", "three", True)), "एक बच्चे ने तीन अंडे खा लिए।", "एका मुलाने तीन अंडी खाल्ली.", "એક બાળકે ત્રણ ઈંડાં ખાધાં.", "ಒಂದು ಮಗು ಮೂರು ಮೊಟ್ಟೆಗಳನ್ನು ತಿಂದಿತು.", "ஒரு குழந்தை மூன்று முட்டைகளைச் சாப்பிட்டது."),
    (Clause(HORSES, "run"), "दो बड़े काले घोड़े दौड़े।", "दोन मोठे काळे घोडे धावले.", "બે મોટા કાળા ઘોડા દોડ્યા.", "ಎರಡು ದೊಡ್ಡ ಕಪ್ಪು ಕುದುರೆಗಳು ಓಡಿದವು.", "இரண்டு பெரிய கருப்பு குதிரைகள் ஓடின."),
    (Clause(NounPhrase("cow", "some", True), "sleep", "present"), "कुछ गायें सोती हैं।", "काही गायी झोपतात.", "કેટલીક ગાયો ઊંઘે છે.", "ಕೆಲವು ಹಸುಗಳು ಮಲಗುತ್ತವೆ.", "சில பசுக்கள் தூங்குகின்றன."),
    (Clause(NounPhrase("girl", "two", True), "dance", "future", time="tomorrow", time_first=True), "कल दो लड़कियाँ नाचेंगी।", "उद्या दोन मुली नाचतील.", "આવતીકાલે બે છોકરીઓ નાચશે.", "ನಾಳೆ ಇಬ್ಬರು ಹುಡುಗಿಯರು ಕುಣಿಯುವರು.", "நாளை இரண்டு சிறுமிகள் நடனமாடுவார்கள்."),
    (Clause(DOG, "drink", "past", NounPhrase("milk", "some"), negated=True), "कुत्ते ने दूध नहीं पिया।", "कुत्र्याने दूध प्यायले नाही.", "કૂતરાએ દૂધ પીધું નહીં.", "ನಾಯಿ ಹಾಲನ್ನು ಕುಡಿಯಲಿಲ್ಲ.", "நாய் பாலைக் குடிக்கவில்லை."),
    (Clause(GIRL, "buy", "present", NounPhrase("tea", "some")), "लड़की थोड़ी चाय खरीदती है।", "मुलगी थोडा चहा विकत घेते.", "છોકરી થોડી ચા ખરીદે છે.", "ಹುಡುಗಿ ಸ್ವಲ್ಪ ಚಹಾವನ್ನು ಖರೀದಿಸುತ್ತಾಳೆ.", "சிறுமி கொஞ்சம் தேநீரை வாங்குகிறாள்."),
    (Clause(BOY, "see", "past", NounPhrase("cat", "some", True), negated=True), "लड़के ने कोई बिल्ली नहीं देखी।", "मुलाने कोणतीही मांजर पाहिली नाही.", "છોકરાએ કોઈ બિલાડી જોઈ નહીં.", "ಹುಡುಗನು ಯಾವ ಬೆಕ್ಕನ್ನೂ ನೋಡಲಿಲ್ಲ.", "சிறுவன் எந்தப் பூனையையும் பார்க்கவில்லை."),
    (Clause(BOY, "eat", "present", NounPhrase("meat"), negated=True), "लड़का मांस नहीं खाता।", "मुलगा मांस खात नाही.", "છોકરો માંસ ખાતો નથી.", "ಹುಡುಗನು ಮಾಂಸವನ್ನು ತಿನ್ನುವುದಿಲ್ಲ.", "சிறுவன் இறைச்சியைச் சாப்பிடுவதில்லை."),
    (Clause(DOG, "run", "future", negated=True), "कुत्ता नहीं दौड़ेगा।", "कुत्रा धावणार नाही.", "કૂતરો દોડશે નહીં.", "ನಾಯಿ ಓಡುವುದಿಲ್ಲ.", "நாய் ஓடாது."),
    (Clause(GIRL, "sing", "future", negated=True), "लड़की नहीं गाएगी।", "मुलगी गाणार नाही.", "છોકરી ગાશે નહીં.", "ಹುಡುಗಿ ಹಾಡುವುದಿಲ್ಲ.", "சிறுமி பாட மாட்டாள்."),
    (Clause(DOG, "sleep", question=True), "क्या कुत्ता सोया?", "कुत्रा झोपला का?", "શું કૂતરો ઊંઘ્યો?", "ನಾಯಿ ಮಲಗಿತೇ?", "நாய் தூங்கியதா?"),
    (Clause(GIRL, "write", "present", NounPhrase("letter"), question=True), "क्या लड़की चिट्ठी लिखती है?", "मुलगी पत्र लिहिते का?", "શું છોકરી પત્ર લખે છે?", "ಹುಡುಗಿ ಪತ್ರವನ್ನು ಬರೆಯುತ್ತಾಳೆಯೇ?", "சிறுமி கடிதத்தை எழுதுகிறாளா?"),
    (Clause(NounPhrase("cat"), BE, quality="black"), "बिल्ली काली थी।", "मांजर काळी होती.", "બિલાડી કાળી હતી.", "ಬೆಕ್ಕು ಕಪ್ಪಾಗಿತ್ತು.", "பூனை கருப்பாக இருந்தது."),
    (Clause(NounPhrase("girl", plural=True), BE, "present", quality="tired"), "लड़कियाँ थकी हुई हैं।", "मुली थकलेल्या आहेत.", "છોકરીઓ થાકેલી છે.", "ಹುಡುಗಿಯರು ದಣಿದಿದ್ದಾರೆ.", "சிறுமிகள் களைப்பாக இருக்கிறார்கள்."),
    (Clause(NounPhrase("window"), BE, "present", quality="new", negated=True), "खिड़की नई नहीं है।", "खिडकी नवीन नाही.", "બારી નવી નથી.", "ಕಿಟಕಿ ಹೊಸದಾಗಿಲ್ಲ.", "ஜன்னல் புதிதாக இல்லை."),
    (Clause(BOY, BE, "past", quality="sad", negated=True), "लड़का दुखी नहीं था।", "मुलगा दुःखी नव्हता.", "છોકરો દુઃખી નહોતો.", "ಹುಡುಗನು ದುಃಖಿತನಾಗಿರಲಿಲ್ಲ.", "சிறுவன் சோகமாக இருக்கவில்லை."),
    (Clause(NounPhrase("man", adjectives=("old",)), "work", place=Place("in", NounPhrase("garden", adjectives=("old",)))), "बूढ़े आदमी ने पुराने बगीचे में काम किया।", "म्हाताऱ्या पुरुषाने जुन्या बागेत काम केले.", "ઘરડા પુરુષે જૂના બગીચામાં કામ કર્યું.", "ವಯಸ್ಸಾದ ಮನುಷ್ಯನು ಹಳೆಯ ತೋಟದಲ್ಲಿ ಕೆಲಸ ಮಾಡಿದನು.", "வயதான மனிதன் பழைய தோட்டத்தில் வேலை செய்தான்."),
    (Clause(DOG, "wait", place=Place("under", NounPhrase("table"))), "कुत्ते ने मेज़ के नीचे इंतज़ार किया।", "कुत्र्याने टेबलाखाली वाट पाहिली.", "કૂતરાએ ટેબલ નીચે રાહ જોઈ.", "ನಾಯಿ ಮೇಜಿನ ಕೆಳಗೆ ಕಾಯಿತು.", "நாய் மேசையின் கீழே காத்திருந்தது."),
    (Clause(DOG, "wait", "present", place=Place("behind", NounPhrase("house"))), "कुत्ता घर के पीछे इंतज़ार करता है।", "कुत्रा घरामागे वाट पाहतो.", "કૂતરો ઘર પાછળ રાહ જુએ છે.", "ನಾಯಿ ಮನೆಯ ಹಿಂದೆ ಕಾಯುತ್ತದೆ.", "நாய் வீட்டின் பின்னால் காத்திருக்கிறது."),
    (Clause(BOY, "carry", "past", NounPhrase("key")), "लड़का चाबी ले गया।", "मुलाने किल्ली नेली.", "છોકરો ચાવી લઈ ગયો.", "ಹುಡುಗನು ಕೀಲಿಯನ್ನು ಹೊತ್ತೊಯ್ದನು.", "சிறுவன் சாவியைச் சுமந்தான்."),
    (Clause(GIRL, "hear", "past", DOG), "लड़की ने कुत्ते की आवाज़ सुनी।", "मुलीने कुत्र्याचा आवाज ऐकला.", "છોકરીએ કૂતરાનો અવાજ સાંભળ્યો.", "ಹುಡುಗಿ ನಾಯಿಯ ಧ್ವನಿಯನ್ನು ಕೇಳಿದಳು.", "சிறுமி நாயின் குரலைக் கேட்டாள்."),
    (Clause(GIRL, "paint", "past", NounPhrase("chair")), "लड़की ने कुर्सी रंगी।", "मुलीने खुर्ची रंगवली.", "છોકરીએ ખુરશી રંગી.", "ಹುಡುಗಿ ಕುರ್ಚಿಗೆ ಬಣ್ಣ ಬಳಿದಳು.", "சிறுமி நாற்காலிக்கு வண்ணம் பூசினாள்."),
    (Clause(NounPhrase("bear", plural=True), "sleep", "past", negated=True), "भालू नहीं सोए।", "अस्वले झोपली नाहीत.", "રીંછો ઊંઘ્યાં નહીં.", "ಕರಡಿಗಳು ಮಲಗಲಿಲ್ಲ.", "கரடிகள் தூங்கவில்லை."),
    (Clause(NounPhrase("dog", "the", True), BE, "past", quality="old"), "कुत्ते बूढ़े थे।", "कुत्रे म्हातारे होते.", "કૂતરા ઘરડા હતા.", "ನಾಯಿಗಳು ಮುದಿಯಾಗಿದ್ದವು.", "நாய்கள் வயதானவையாக இருந்தன."),
    (Clause(NounPhrase("book", "two", True), BE, "future", quality="old", negated=True), "दो किताबें पुरानी नहीं होंगी।", "दोन पुस्तके जुनी नसतील.", "બે પુસ્તકો જૂનાં નહીં હોય.", "ಎರಡು ಪುಸ್ತಕಗಳು ಹಳೆಯದಾಗಿರುವುದಿಲ್ಲ.", "இரண்டு புத்தகங்கள் பழையவையாக இருக்காது."),
]  # fmt: skip


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("number", range(len(SAID)))
def test_what_was_written_by_hand(code: str, number: int) -> None:
    clause, *texts = SAID[number]
    assert realiser(code)(Sentence((clause,), end="?" if clause.question else ".")).text == texts[LANGUAGES.index(code)]


LINKED = {
    "because": ("कुत्ता दौड़ा क्योंकि लड़की हँसी।", "कुत्रा धावला कारण मुलगी हसली.", "કૂતરો દોડ્યો કારણ કે છોકરી હસી.", "ನಾಯಿ ಓಡಿತು, ಏಕೆಂದರೆ ಹುಡುಗಿ ನಕ್ಕಳು.", "நாய் ஓடியது, ஏனென்றால் சிறுமி சிரித்தாள்."),
    "but": ("कुत्ता दौड़ा, लेकिन लड़की हँसी।", "कुत्रा धावला, पण मुलगी हसली.", "કૂતરો દોડ્યો, પણ છોકરી હસી.", "ನಾಯಿ ಓಡಿತು, ಆದರೆ ಹುಡುಗಿ ನಕ್ಕಳು.", "நாய் ஓடியது, ஆனால் சிறுமி சிரித்தாள்."),
    "and": ("कुत्ता दौड़ा और लड़की हँसी।", "कुत्रा धावला आणि मुलगी हसली.", "કૂતરો દોડ્યો અને છોકરી હસી.", "ನಾಯಿ ಓಡಿತು ಮತ್ತು ಹುಡುಗಿ ನಕ್ಕಳು.", "நாய் ஓடியது, மேலும் சிறுமி சிரித்தாள்."),
}  # fmt: skip


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("link", LINKED)
def test_two_clauses(code: str, link: str) -> None:
    both = Sentence((Clause(DOG, "run"), Clause(GIRL, "laugh")), link)  # pyright: ignore[reportArgumentType]
    assert realiser(code)(both).text == LINKED[link][LANGUAGES.index(code)]


@pytest.mark.parametrize(
    ("code", "pairs"),
    [
        ("hi", "black-काली cat-बिल्ली cat-ने ate-खा ate-लिया mouse-चूहे mouse-को .-।"),
        ("mr", "black-काळ्या cat-मांजरीने ate-खाल्ला mouse-उंदीर .-."),
        ("gu", "black-કાળી cat-બિલાડીએ ate-ખાધો mouse-ઉંદર .-."),
        ("kn", "black-ಕಪ್ಪು cat-ಬೆಕ್ಕು ate-ತಿಂದಿತು mouse-ಇಲಿಯನ್ನು .-."),
        ("ta", "black-கருப்பு cat-பூனை ate-தின்றது mouse-எலியைத் .-."),
    ],
)
def test_alignment_of_the_black_cat(code: str, pairs: str) -> None:
    cat = Clause(NounPhrase("cat", adjectives=("black",)), "eat", "past", NounPhrase("mouse"))
    english, other = realiser("en")(Sentence((cat,))), realiser(code)(Sentence((cat,)))
    found = {f"{english.words[i]}-{other.words[j]}" for i, j in links(english.tokens, other.tokens)}
    assert found == set(pairs.split())


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_sentence_is_in_one_script(code: str) -> None:
    """No letter of another script slipped into a table: of all that is said, every letter is of the language's block."""
    from regard.tasks.corpora.sampling import sentences

    start = {"hi": 0x0900, "mr": 0x0900, "gu": 0x0A80, "kn": 0x0C80, "ta": 0x0B80}[code]
    text = "".join(realiser(code)(sentence).text for sentence in sentences("train", 3, 2000))
    assert {c for c in text if c not in " .,!?।" and not start <= ord(c) < start + 0x80} == set()
