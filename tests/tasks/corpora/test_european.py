"""One meaning for each construction, and what it is in French, Spanish, Italian, German and Chinese: read by eye."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regard.tasks.corpora import realiser
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Place, Sentence
from tests.tasks.corpora.alignments import aligned

N, C = NounPhrase, Clause
WOMAN, MAN, CHILD = N("woman"), N("man"), N("child", "a")

CASES = [
    (
        Sentence((C(N("horse", "some", True, ("beautiful", "black")), "arrive"),)),
        {
            "en": "Some beautiful black horses arrived.",
            "fr": "De beaux chevaux noirs sont arrivés.",
            "es": "Unos hermosos caballos negros llegaron.",
            "it": "Dei bei cavalli neri sono arrivati.",
            "de": "Einige schöne schwarze Pferde sind angekommen.",
            "zh": "一些漂亮的黑马到了。",
        },
    ),
    (
        Sentence((C(WOMAN, "drink", "present", N("water", "some", False, ("cold",))),)),
        {
            "en": "The woman drinks some cold water.",
            "fr": "La femme boit de l'eau froide.",
            "es": "La mujer bebe agua fría.",
            "it": "La donna beve dell'acqua fredda.",
            "de": "Die Frau trinkt kaltes Wasser.",
            "zh": "女人喝一些冷水。",
        },
    ),
    (
        Sentence((C(N("cow"), "drink", "past", N("water")),)),
        {
            "en": "The cow drank the water.",
            "fr": "La vache a bu l'eau.",
            "es": "La vaca se bebió el agua.",
            "it": "La mucca ha bevuto l'acqua.",
            "de": "Die Kuh hat das Wasser gesoffen.",
            "zh": "牛喝了水。",
        },
    ),
    (
        Sentence((C(WOMAN, "buy", "past", N("bread", "some"), negated=True),)),
        {
            "en": "The woman did not buy any bread.",
            "fr": "La femme n'a pas acheté de pain.",
            "es": "La mujer no compró pan.",
            "it": "La donna non ha comprato pane.",
            "de": "Die Frau hat kein Brot gekauft.",
            "zh": "女人没有买面包。",
        },
    ),
    (
        Sentence((C(CHILD, "read", "past", N("book", "some", True), negated=True),)),
        {
            "en": "A child did not read any books.",
            "fr": "Un enfant n'a pas lu de livres.",
            "es": "Un niño no leyó ningún libro.",
            "it": "Un bambino non ha letto nessun libro.",
            "de": "Ein Kind hat keine Bücher gelesen.",
            "zh": "一个孩子没有读任何书。",
        },
    ),
    (
        Sentence((C(WOMAN, "see", "past", N("dog", "a"), negated=True),)),
        {
            "en": "The woman did not see a dog.",
            "fr": "La femme n'a pas vu de chien.",
            "es": "La mujer no vio un perro.",
            "it": "La donna non ha visto un cane.",
            "de": "Die Frau hat keinen Hund gesehen.",
            "zh": "女人没有看见狗。",
        },
    ),
    (
        Sentence((C(N("boy", "the", True), "hear", "past", N("elephant", "the", False, ("old",)), negated=True),)),
        {
            "en": "The boys did not hear the old elephant.",
            "fr": "Les garçons n'ont pas entendu le vieil éléphant.",
            "es": "Los chicos no oyeron al elefante viejo.",
            "it": "I ragazzi non hanno sentito il vecchio elefante.",
            "de": "Die Jungen haben den alten Elefanten nicht gehört.",
            "zh": "男孩们没有听见年老的大象。",
        },
    ),
    (
        Sentence((C(N("dog", "three", True), "see", "past", N("doctor", "the", False, ("young",))),)),
        {
            "en": "Three dogs saw the young doctor.",
            "fr": "Trois chiens ont vu le jeune médecin.",
            "es": "Tres perros vieron al médico joven.",
            "it": "Tre cani hanno visto il giovane medico.",
            "de": "Drei Hunde haben den jungen Arzt gesehen.",
            "zh": "三只狗看见了年轻的医生。",
        },
    ),
    (
        Sentence((C(WOMAN, "hear", "past", N("student", "some", True)),)),
        {
            "en": "The woman heard some students.",
            "fr": "La femme a entendu des étudiants.",
            "es": "La mujer oyó a unos estudiantes.",
            "it": "La donna ha sentito degli studenti.",
            "de": "Die Frau hat einige Studenten gehört.",
            "zh": "女人听见了一些学生。",
        },
    ),
    (
        Sentence((C(WOMAN, "see", "past", N("girl", "some", True), negated=True),)),
        {
            "en": "The woman did not see any girls.",
            "fr": "La femme n'a pas vu de filles.",
            "es": "La mujer no vio a ninguna chica.",
            "it": "La donna non ha visto nessuna ragazza.",
            "de": "Die Frau hat keine Mädchen gesehen.",
            "zh": "女人没有看见任何女孩。",
        },
    ),
    (
        Sentence(
            (
                C(
                    N("student", "a", False, ("clever",)),
                    "choose",
                    "future",
                    N("umbrella", "the", False, ("beautiful", "red")),
                    time="tomorrow",
                    time_first=True,
                ),
            )
        ),
        {
            "en": "Tomorrow a clever student will choose the beautiful red umbrella.",
            "fr": "Demain un étudiant intelligent choisira le beau parapluie rouge.",
            "es": "Mañana un estudiante inteligente elegirá el hermoso paraguas rojo.",
            "it": "Domani uno studente intelligente sceglierà il bell'ombrello rosso.",
            "de": "Morgen wird ein kluger Student den schönen roten Regenschirm auswählen.",
            "zh": "明天一个聪明的学生会选漂亮的红色雨伞。",
        },
    ),
    (
        Sentence(
            (
                C(
                    N(
                        "student",
                    ),
                    "choose",
                    "present",
                    N("egg", "the", True, ("fresh",)),
                ),
            )
        ),
        {
            "en": "The student chooses the fresh eggs.",
            "fr": "L'étudiant choisit les œufs frais.",
            "es": "El estudiante elige los huevos frescos.",
            "it": "Lo studente sceglie le uova fresche.",
            "de": "Der Student wählt die frischen Eier aus.",
            "zh": "学生选那些新鲜的鸡蛋。",
        },
    ),
    (
        Sentence((C(WOMAN, "arrive", "present", time="today"),)),
        {
            "en": "The woman arrives today.",
            "fr": "La femme arrive aujourd'hui.",
            "es": "La mujer llega hoy.",
            "it": "La donna arriva oggi.",
            "de": "Die Frau kommt heute an.",
            "zh": "女人今天到达。",
        },
    ),
    (
        Sentence((C(N("cat"), "eat", "past", N("egg", "two", True), question=True),), end="?"),
        {
            "en": "Did the cat eat two eggs?",
            "fr": "Est-ce que le chat a mangé deux œufs ?",
            "es": "¿Se comió el gato dos huevos?",
            "it": "Il gatto ha mangiato due uova?",
            "de": "Hat die Katze zwei Eier gefressen?",
            "zh": "猫吃了两个鸡蛋吗？",
        },
    ),
    (
        Sentence(
            (
                C(
                    N(
                        "soup",
                    ),
                    BE,
                    "past",
                    quality="cold",
                    question=True,
                ),
            ),
            end="?",
        ),
        {
            "en": "Was the soup cold?",
            "fr": "Est-ce que la soupe était froide ?",
            "es": "¿Estaba fría la sopa?",
            "it": "La zuppa era fredda?",
            "de": "War die Suppe kalt?",
            "zh": "汤凉吗？",
        },
    ),
    (
        Sentence((C(N("princess", "the", True), BE, "past", quality="tired"),)),
        {
            "en": "The princesses were tired.",
            "fr": "Les princesses étaient fatiguées.",
            "es": "Las princesas estaban cansadas.",
            "it": "Le principesse erano stanche.",
            "de": "Die Prinzessinnen waren müde.",
            "zh": "公主们很累。",
        },
    ),
    (
        Sentence((C(N("house"), BE, "present", quality="white", negated=True),)),
        {
            "en": "The house is not white.",
            "fr": "La maison n'est pas blanche.",
            "es": "La casa no es blanca.",
            "it": "La casa non è bianca.",
            "de": "Das Haus ist nicht weiß.",
            "zh": "房子不是白色的。",
        },
    ),
    (
        Sentence((C(N("flower", "the", True), BE, "future", quality="beautiful"),)),
        {
            "en": "The flowers will be beautiful.",
            "fr": "Les fleurs seront belles.",
            "es": "Las flores serán hermosas.",
            "it": "I fiori saranno belli.",
            "de": "Die Blumen werden schön sein.",
            "zh": "那些花会很漂亮。",
        },
    ),
    (
        Sentence((C(N("king"), BE, "past", quality="sick"),)),
        {
            "en": "The king was sick.",
            "fr": "Le roi était malade.",
            "es": "El rey estaba enfermo.",
            "it": "Il re era malato.",
            "de": "Der König war krank.",
            "zh": "国王生病了。",
        },
    ),
    (
        Sentence((C(WOMAN, "sleep", place=Place("near", N("bridge", "the", False, ("old",)))),)),
        {
            "en": "The woman slept near the old bridge.",
            "fr": "La femme a dormi près du vieux pont.",
            "es": "La mujer durmió cerca del puente viejo.",
            "it": "La donna ha dormito vicino al vecchio ponte.",
            "de": "Die Frau hat in der Nähe der alten Brücke geschlafen.",
            "zh": "女人在老桥附近睡了。",
        },
    ),
    (
        Sentence(
            (C(N("monkey", "the", False, ("small", "gray")), "hide", "past", N("key"), place=Place("in", N("garden"))),)
        ),
        {
            "en": "The small gray monkey hid the key in the garden.",
            "fr": "Le petit singe gris a caché la clé dans le jardin.",
            "es": "El pequeño mono gris escondió la llave en el jardín.",
            "it": "La piccola scimmia grigia ha nascosto la chiave nel giardino.",
            "de": "Der kleine graue Affe hat den Schlüssel im Garten versteckt.",
            "zh": "灰色的小猴子在花园里把钥匙藏起来了。",
        },
    ),
    (
        Sentence((C(WOMAN, "dance", "past", place=Place("in", N("street")), time="last week"),)),
        {
            "en": "The woman danced in the street last week.",
            "fr": "La femme a dansé dans la rue la semaine dernière.",
            "es": "La mujer bailó en la calle la semana pasada.",
            "it": "La donna ha ballato nella strada la settimana scorsa.",
            "de": "Die Frau hat letzte Woche auf der Straße getanzt.",
            "zh": "女人上周在街上跳舞了。",
        },
    ),
    (
        Sentence((C(N("dog"), "sleep", "present", place=Place("on", N("bed")), time="every day"),)),
        {
            "en": "The dog sleeps on the bed every day.",
            "fr": "Le chien dort sur le lit tous les jours.",
            "es": "El perro duerme sobre la cama todos los días.",
            "it": "Il cane dorme sul letto ogni giorno.",
            "de": "Der Hund schläft jeden Tag auf dem Bett.",
            "zh": "狗每天在床上睡觉。",
        },
    ),
    (
        Sentence((C(N("bird"), "sing", "past", place=Place("under", N("tree"))),)),
        {
            "en": "The bird sang under the tree.",
            "fr": "L'oiseau a chanté sous l'arbre.",
            "es": "El pájaro cantó debajo del árbol.",
            "it": "L'uccello ha cantato sotto l'albero.",
            "de": "Der Vogel hat unter dem Baum gesungen.",
            "zh": "鸟在树下唱歌了。",
        },
    ),
    (
        Sentence((C(N("soldier", "four", True), "wait", "future", place=Place("behind", N("school"))),)),
        {
            "en": "Four soldiers will wait behind the school.",
            "fr": "Quatre soldats attendront derrière l'école.",
            "es": "Cuatro soldados esperarán detrás de la escuela.",
            "it": "Quattro soldati aspetteranno dietro la scuola.",
            "de": "Vier Soldaten werden hinter der Schule warten.",
            "zh": "四名士兵会在学校后面等待。",
        },
    ),
    (
        Sentence(
            (C(MAN, "open", "past", N("window")), C(CHILD, "cry", "past", place=Place("in", N("kitchen")))), "because"
        ),
        {
            "en": "The man opened the window because a child cried in the kitchen.",
            "fr": "L'homme a ouvert la fenêtre parce qu'un enfant a pleuré dans la cuisine.",
            "es": "El hombre abrió la ventana porque un niño lloró en la cocina.",
            "it": "L'uomo ha aperto la finestra perché un bambino ha pianto nella cucina.",
            "de": "Der Mann hat das Fenster geöffnet, weil ein Kind in der Küche geweint hat.",
            "zh": "男人打开了窗户，因为一个孩子在厨房里哭了。",
        },
    ),
    (
        Sentence(
            (C(MAN, "laugh", "present"), C(N("friend"), "sell", "future", N("car", "the", False, ("old", "blue")))),
            "because",
        ),
        {
            "en": "The man laughs because the friend will sell the old blue car.",
            "fr": "L'homme rit parce que l'ami vendra la vieille voiture bleue.",
            "es": "El hombre se ríe porque el amigo venderá el viejo coche azul.",
            "it": "L'uomo ride perché l'amico venderà la vecchia macchina blu.",
            "de": "Der Mann lacht, weil der Freund das alte blaue Auto verkaufen wird.",
            "zh": "男人笑，因为朋友会卖蓝色的旧汽车。",
        },
    ),
    (
        Sentence(
            (C(N("duck"), "swim", "present"), C(N("hen", "the", True), "fly", "present", negated=True)), "but", "!"
        ),
        {
            "en": "The duck swims, but the hens do not fly!",
            "fr": "Le canard nage, mais les poules ne volent pas !",
            "es": "¡El pato nada, pero las gallinas no vuelan!",
            "it": "L'anatra nuota, ma le galline non volano!",
            "de": "Die Ente schwimmt, aber die Hennen fliegen nicht!",
            "zh": "鸭子游泳，但是那些母鸡不飞！",
        },
    ),
    (
        Sentence((C(WOMAN, "write", "past", N("letter", "a")), C(MAN, "read", "past", N("newspaper"))), "and"),
        {
            "en": "The woman wrote a letter, and the man read the newspaper.",
            "fr": "La femme a écrit une lettre, et l'homme a lu le journal.",
            "es": "La mujer escribió una carta, y el hombre leyó el periódico.",
            "it": "La donna ha scritto una lettera, e l'uomo ha letto il giornale.",
            "de": "Die Frau hat einen Brief geschrieben, und der Mann hat die Zeitung gelesen.",
            "zh": "女人写了一封信，男人读了报纸。",
        },
    ),
    (
        Sentence(
            (C(N("mouse", "some", True, ("young", "white")), "find", "past", N("cheese", "the", False, ("good",))),)
        ),
        {
            "en": "Some young white mice found the good cheese.",
            "fr": "De jeunes souris blanches ont trouvé le bon fromage.",
            "es": "Unos jóvenes ratones blancos encontraron el buen queso.",
            "it": "Dei giovani topi bianchi hanno trovato il buon formaggio.",
            "de": "Einige junge weiße Mäuse haben den guten Käse gefunden.",
            "zh": "一些年轻的白色老鼠找到了好吃的奶酪。",
        },
    ),
    (
        Sentence((C(MAN, "carry", "past", N("chair", "two", True)),)),
        {
            "en": "The man carried two chairs.",
            "fr": "L'homme a porté deux chaises.",
            "es": "El hombre llevó dos sillas.",
            "it": "L'uomo ha portato due sedie.",
            "de": "Der Mann hat zwei Stühle getragen.",
            "zh": "男人搬了两把椅子。",
        },
    ),
]


@pytest.mark.parametrize(
    ("sentence", "code", "text"), [(sentence, code, text) for sentence, texts in CASES for code, text in texts.items()]
)
def test_construction(sentence: Sentence, code: str, text: str) -> None:
    assert realiser(code)(sentence).text == text


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        (C(N("man", adjectives=("old",)), "sleep", "present"), "Le vieil homme dort."),
        (C(N("princess", "a", adjectives=("beautiful",)), "arrive"), "Une belle princesse est arrivée."),
        (C(WOMAN, "see", object=N("elephant", adjectives=("small",))), "La femme a vu le petit éléphant."),
        (C(WOMAN, "see", object=N("bird", adjectives=("beautiful", "blue"))), "La femme a vu le bel oiseau bleu."),
        (C(WOMAN, "eat", "past", N("soup", "some", adjectives=("good",))), "La femme a mangé de la bonne soupe."),
        (C(WOMAN, "eat", "past", N("egg", "a"), negated=True), "La femme n'a pas mangé d'œuf."),
        (C(WOMAN, "sleep", place=Place("near", N("school"))), "La femme a dormi près de l'école."),
        (C(WOMAN, "sleep", place=Place("near", N("river"))), "La femme a dormi près de la rivière."),
        (C(WOMAN, "open", "present", N("door"), negated=True), "La femme n'ouvre pas la porte."),
        (C(CHILD, "cry", question=True), "Est-ce qu'un enfant a pleuré ?"),
        (C(N("flower", plural=True), BE, "present", quality="brown"), "Les fleurs sont marron."),
        (C(WOMAN, "sell", "future", N("potato", "two", True)), "La femme vendra deux pommes de terre."),
    ],
)
def test_french(clause: Clause, text: str) -> None:
    assert realiser("fr")(Sentence((clause,), end="?" if clause.question else ".")).text == text


@pytest.mark.parametrize(
    ("np", "text"),
    [
        (N("dog", "a", adjectives=("small",)), "einen kleinen Hund"),
        (N("lion", adjectives=("strong",)), "den starken Löwen"),
        (N("girl", "a", adjectives=("tired",)), "ein müdes Mädchen"),
        (N("wine", "some", adjectives=("expensive",)), "teuren Wein"),
        (N("milk", "some", adjectives=("cold",)), "kalte Milch"),
        (N("horse", plural=True, adjectives=("young", "brown")), "die jungen braunen Pferde"),
        (N("horse", "some", True, ("young", "brown")), "einige junge braune Pferde"),
        (N("boy", "three", True, ("happy",)), "drei glückliche Jungen"),
    ],
)
def test_german_accusative(np: NounPhrase, text: str) -> None:
    assert realiser("de")(Sentence((C(WOMAN, "see", object=np),))).text == f"Die Frau hat {text} gesehen."


@pytest.mark.parametrize(
    ("np", "text"),
    [
        (N("cat", adjectives=("small",)), "il piccolo gatto"),
        (N("student", plural=True), "gli studenti"),
        (N("umbrella", "a"), "un ombrello"),
        (N("orange", "a"), "un'arancia"),
        (N("student", "a", adjectives=("young",)), "un giovane studente"),
        (N("bird", plural=True, adjectives=("beautiful", "blue")), "i begli uccelli blu"),
        (N("bird", adjectives=("beautiful", "blue")), "il bell'uccello blu"),
        (N("egg", "some", True, ("small",)), "delle piccole uova"),
        (N("egg", adjectives=("good",)), "il buon uovo"),
    ],
)
def test_italian_articles(np: NounPhrase, text: str) -> None:
    assert realiser("it")(Sentence((C(WOMAN, "find", object=np),))).text == f"La donna ha trovato {text}."


@pytest.mark.parametrize(
    ("np", "text"),
    [
        (N("cat", "two", True, ("small", "black")), "两只小黑猫"),
        (N("mouse", "a", adjectives=("small", "gray")), "一只灰色的小老鼠"),
        (N("book", "three", True, ("old",)), "三本旧书"),
        (N("horse", "a", adjectives=("old",)), "一匹老马"),
        (N("shirt", "four", True, ("new", "blue")), "四件蓝色的新衬衫"),
        (N("car", "a", adjectives=("beautiful",)), "一辆漂亮的汽车"),
        (N("flower", "the", True, ("red",)), "那些红花"),
        (N("child", "the", True), "孩子们"),
    ],
)
def test_chinese_noun_phrases(np: NounPhrase, text: str) -> None:
    assert realiser("zh")(Sentence((C(N("man"), "see", object=np),))).text == f"男人看见了{text}。"


def test_alignments_that_are_not_word_for_word() -> None:
    shown = Sentence((C(N("cat", adjectives=("black",)), "eat", "past", N("mouse")),))
    german = aligned("de", shown)
    assert {("ate", "hat"), ("ate", "gefressen"), ("black", "schwarze"), ("mouse", "Maus")} <= german
    assert {("ate", "se"), ("ate", "comió"), ("cat", "gato")} <= aligned("es", shown)
    chinese = aligned("zh", shown)
    assert chinese == {("black", "黑"), ("cat", "猫"), ("ate", "吃"), ("ate", "了"), ("mouse", "老鼠"), (".", "。")}
    none = Sentence((C(WOMAN, "buy", "past", N("bread", "some"), negated=True),))
    assert {("not", "kein"), ("any", "kein"), ("did", "hat"), ("buy", "gekauft")} <= aligned("de", none)
    person = Sentence((C(WOMAN, "see", "past", N("doctor")),))
    assert {("doctor", "al"), ("the", "al"), ("doctor", "médico")} <= aligned("es", person)
    near = Sentence((C(WOMAN, "sleep", place=Place("near", N("bridge"))),))
    assert {("near", "près"), ("near", "du"), ("the", "du"), ("bridge", "pont")} <= aligned("fr", near)
    separable = Sentence((C(WOMAN, "arrive", "present"),))
    assert {("arrives", "kommt"), ("arrives", "an")} <= aligned("de", separable)


def test_examples_in_the_documentation_are_what_the_grammar_says() -> None:
    text = (Path(__file__).parents[3] / "docs" / "corpora.md").read_text(encoding="utf-8")
    meanings = {texts["en"]: sentence for sentence, texts in CASES}
    rows = 0
    for code, section in re.findall(r"^### \w+ \(`(\w\w)`\)\n(.*?)(?=^#)", text, re.MULTILINE | re.DOTALL):
        for english, said in re.findall(r"^\| [^|]*\w[^|]* \| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE):
            assert realiser(code)(meanings[english]).text == said
            rows += 1
    assert rows > 60
