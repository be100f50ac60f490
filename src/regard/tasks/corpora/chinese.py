"""Chinese: no articles and no endings, measure words, 了 for what is done, and place and time before the verb."""

from __future__ import annotations

from regard.tasks.corpora.lexicon import COLOURS
from regard.tasks.corpora.lexicon import NOUNS as KINDS
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Place, Realised, Sentence, Token, spell

# With the measure word.
NOUNS: dict[str, str] = {
    "cat": "猫 只", "snake": "蛇 条", "dog": "狗 只", "fox": "狐狸 只", "wolf": "狼 只", "bear": "熊 只", "lion": "狮子 头",
    "tiger": "老虎 只", "mouse": "老鼠 只", "rabbit": "兔子 只", "frog": "青蛙 只", "bird": "鸟 只", "duck": "鸭子 只",
    "hen": "母鸡 只", "fish": "鱼 条", "horse": "马 匹", "cow": "牛 头", "pig": "猪 头", "goat": "山羊 只",
    "donkey": "驴 头", "elephant": "大象 头", "monkey": "猴子 只", "man": "男人 个", "woman": "女人 个", "boy": "男孩 个",
    "girl": "女孩 个", "child": "孩子 个", "king": "国王 位", "queen": "女王 位", "princess": "公主 位",
    "farmer": "农民 个", "teacher": "老师 位", "doctor": "医生 位", "student": "学生 个", "friend": "朋友 个",
    "grandmother": "奶奶 位", "soldier": "士兵 名", "chef": "厨师 位", "apple": "苹果 个", "banana": "香蕉 根",
    "orange": "橙子 个", "pear": "梨 个", "egg": "鸡蛋 个", "potato": "土豆 个", "carrot": "胡萝卜 根",
    "tomato": "西红柿 个", "cake": "蛋糕 个", "bread": "面包 -", "cheese": "奶酪 -", "honey": "蜂蜜 -", "rice": "米饭 -",
    "meat": "肉 -", "soup": "汤 -", "milk": "牛奶 -", "water": "水 -", "tea": "茶 -", "coffee": "咖啡 -",
    "wine": "葡萄酒 -", "juice": "果汁 -", "book": "书 本", "letter": "信 封", "newspaper": "报纸 份", "box": "箱子 个",
    "bag": "包 个", "door": "门 扇", "window": "窗户 扇", "ball": "球 个", "flower": "花 朵", "hat": "帽子 顶",
    "shirt": "衬衫 件", "knife": "刀 把", "key": "钥匙 把", "cup": "杯子 个", "umbrella": "雨伞 把", "picture": "画 幅",
    "lamp": "灯 盏", "chair": "椅子 把", "table": "桌子 张", "bicycle": "自行车 辆", "car": "汽车 辆", "garden": "花园 -",
    "house": "房子 -", "kitchen": "厨房 -", "forest": "森林 -", "park": "公园 -", "street": "街 -", "school": "学校 -",
    "city": "城市 -", "field": "田野 -", "room": "房间 -", "tree": "树 -", "bed": "床 -", "bridge": "桥 -", "river": "河 -",
}  # fmt: skip
# Before a noun, with 的 where it takes one; and what follows 很, where that is another word.
ADJECTIVES: dict[str, str] = {
    "black": "黑", "white": "白", "red": "红", "green": "绿", "blue": "蓝", "yellow": "黄", "brown": "棕", "gray": "灰",
    "big": "大", "small": "小", "old": "旧", "young": "年轻的 年轻", "new": "新", "beautiful": "漂亮的 漂亮",
    "ugly": "难看的 难看", "good": "好吃的 好吃", "fresh": "新鲜的 新鲜", "cold": "冷 凉", "hot": "热",
    "expensive": "昂贵的 贵", "heavy": "沉重的 重", "clean": "干净的 干净", "dirty": "脏", "strong": "强壮的 强壮",
    "clever": "聪明的 聪明", "dangerous": "危险的 危险", "rich": "富有的 富有", "famous": "有名的 有名",
    "happy": "快乐的 快乐", "sad": "伤心的 伤心", "tired": "疲惫的 累", "sick": "生病的 生病",
}  # fmt: skip
# The same quality of other nouns.
DRINKABLE = ("milk", "water", "tea", "coffee", "wine", "juice", "soup")
OLD_PLACES = ("garden", "house", "park", "street", "school", "tree", "bridge")
ANCIENT = ("city", "forest", "river")
# In the present and the future, and with 了; result verbs are written with a space (看 见): denied, 看不见.
VERBS: dict[str, str] = {
    "eat": "吃", "drink": "喝", "see": "看_见", "find": "找_到", "hear": "听_见", "catch": "抓_住", "steal": "偷", "buy": "买",
    "sell": "卖", "wash": "洗", "cook": "煮", "cut": "切", "paint": "漆", "draw": "画", "read": "读", "write": "写",
    "open": "打开", "close": "关上", "hide": "藏", "lose": "丢", "carry": "搬", "push": "推", "choose": "选",
    "sleep": "睡觉 睡", "run": "跑", "swim": "游泳", "fly": "飞", "jump": "跳", "play": "玩", "wait": "等待", "arrive": "到达 到",
    "sing": "唱歌", "dance": "跳舞", "walk": "散步", "laugh": "笑", "cry": "哭", "smile": "微笑", "work": "工作",
    "talk": "说话",
}  # fmt: skip
CLOSING = {"book": "合上", "umbrella": "收起"}
HEAVY = ("box", "chair", "table", "bicycle", "picture", "lamp")  # these one 搬; others one 拿着, animals 驮着
NUMERALS = {"two": "两", "three": "三", "four": "四"}
SIDES = {"in": "里", "on": "上", "under": "下", "behind": "后面", "near": "附近"}
TIMES = {
    "yesterday": "昨天",
    "last week": "上周",
    "today": "今天",
    "every day": "每天",
    "tomorrow": "明天",
    "next week": "下周",
}
LINKS = {"but": "但是", "because": "因为"}
MARKS = {latin: (Token(mark, ("end",), glue=True),) for latin, mark in ((".", "。"), ("!", "！"), ("?", "？"))}


def word(form: str, *nodes: str) -> Token:
    return Token(form, nodes, glue=True)


def realise(sentence: Sentence) -> Realised:
    tokens: list[Token] = []
    for number, clause in enumerate(sentence.clauses):
        if sentence.link == "and" and number:  # the comma alone joins them
            tokens.append(word("，", "comma", "link"))
        elif sentence.link and number:
            tokens += [word("，", "comma"), word(LINKS[sentence.link], "link")]
        tokens += _clause(clause, str(number))
    return spell(tokens, sentence, MARKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    subject = _noun_phrase(clause.subject, f"{c}.subject")
    time = [word(TIMES[clause.time], f"{c}.time")] if clause.time else []
    opening = [*time, *subject] if clause.time_first else [*subject, *time]
    if clause.verb == BE:
        return [*opening, *_quality(clause, c)]
    place = _place(clause.place, c) if clause.place else []
    asked = [word("吗", f"{c}.question")] if clause.question else []
    return [*opening, *_action(clause, c, place), *asked]


def _quality(clause: Clause, c: str) -> list[Token]:
    """很 or 是 for "is"; what denies or asks says it too, where neither stands."""
    assert clause.quality is not None
    verb, denied, asked, quality = f"{c}.verb", f"{c}.not", f"{c}.question", f"{c}.quality"
    future = [word("会", verb)] if clause.tense == "future" else []
    ask = [word("吗", asked)] if clause.question else []
    if clause.quality in COLOURS:
        no = [word("不", denied)] if clause.negated else []
        name = [word(ADJECTIVES[clause.quality] + "色", quality), word("的", quality)]
        return [*no, *future, word("是", verb), *name, *ask]
    said = word(_predicated(clause.quality, clause.subject.noun), quality)
    if clause.quality == "sick" and not future:
        return [word("没有", denied, verb), said] if clause.negated else [said, word("了", verb), *ask]
    if future:
        no = [word("不", denied)] if clause.negated else []
        very = [] if clause.quality == "sick" else [word("很", verb)]
        return [*no, *future, *very, said, *ask]
    if clause.negated:
        return [word("不", denied, verb), said]
    return [said, word("吗", asked, verb)] if clause.question else [word("很", verb), said]


def _action(clause: Clause, c: str, place: list[Token]) -> list[Token]:
    """Not, will, where, and the verb with its object."""
    verb, tense = f"{c}.verb", clause.tense
    forms = _verb(clause).split()
    base, _, result = forms[0].partition("_")
    lasting = base.endswith("着")  # which says by itself that it went on
    what = _noun_phrase(clause.object, f"{c}.object", clause.negated) if clause.object else []
    before: list[Token] = []
    if clause.negated:
        unable = tense == "present" and result
        before = [] if unable else [word("没有" if tense == "past" else "不", f"{c}.not")]
    if tense == "future":
        before.append(word("会", verb))
    before += place
    if clause.verb == "hide" and clause.object and clause.object.determiner == "the":
        done = [word("了", verb)] if tense == "past" and not clause.negated else []
        return [*before, word("把", f"{c}.object"), *what, word("藏", verb), word("起来", verb), *done]
    if clause.negated:
        if tense == "present" and result:
            return [*before, word(base, verb), word("不", f"{c}.not"), word(result, verb), *what]
        return [*before, word((base.rstrip("着") if lasting else base) + result, verb), *what]
    if tense == "past" and not lasting:
        return [*before, word(forms[-1].replace("_", ""), verb), word("了", verb), *what]
    if lasting:
        return [*before, word(base[:-1], verb), *([word("着", verb)] if tense != "future" else []), *what]
    return [*before, word(base + result, verb), *what]


def _verb(clause: Clause) -> str:
    what = clause.object.noun if clause.object else ""
    if clause.verb == "close":
        return CLOSING.get(what, VERBS["close"])
    if clause.verb == "carry":
        if KINDS[clause.subject.noun].kind == "animal":
            return "驮着"
        return VERBS["carry"] if what in HEAVY else "拿着"
    return VERBS[clause.verb]


def _place(place: Place, c: str) -> list[Token]:
    node = f"{c}.place.prep"
    side = "上" if place.where.noun == "street" else SIDES[place.preposition]
    return [word("在", node), *_noun_phrase(place.where, f"{c}.place"), word(side, node)]


def _noun_phrase(np: NounPhrase, role: str, denied: bool = False) -> list[Token]:
    name, measure = NOUNS[np.noun].split()
    person = KINDS[np.noun].kind == "person"
    if np.plural and np.determiner == "the" and person:
        name += "们"
    return [*_determiner(np, measure, f"{role}.det", person, denied), *_adjectives(np, role), word(name, role)]


def _determiner(np: NounPhrase, measure: str, det: str, person: bool, denied: bool) -> list[Token]:
    if np.determiner in NUMERALS:
        return [word(NUMERALS[np.determiner], det), word(measure, det)]
    if np.determiner == "the":
        return [word("那些", det)] if np.plural and not person else []
    if denied:
        return [word("任何", det)] if np.plural else []
    if np.determiner == "a":
        return [word("一", det), word(measure, det)]
    return [word("一些", det)]


def _adjectives(np: NounPhrase, role: str) -> list[Token]:
    """小黑猫, but 灰色的小老鼠 and 漂亮的灰色大象: one syllable before another, or with 色 and 的. 黄鱼 is a name."""
    short = len(NOUNS[np.noun].split()[0]) == 1 and np.noun != "fish"
    tokens: list[Token] = []
    for adjective in np.adjectives:
        nodes, form = (f"{role}.{adjective}",), _attributed(adjective, np.noun)
        if adjective not in COLOURS:
            tokens += [word(form.rstrip("的"), *nodes), *([word("的", *nodes)] if form.endswith("的") else [])]
        elif short and adjective != "brown":
            tokens.append(word(form, *nodes))
        elif tokens and tokens[-1].form == "的":
            tokens.append(word(form + "色", *nodes))
        else:
            tokens = [word(form + "色", *nodes), word("的", *nodes), *tokens]
    return tokens


def _attributed(adjective: str, noun: str) -> str:
    if adjective == "old" and (other := _old(noun)):
        return other
    if adjective == "good" and noun in DRINKABLE:
        return "好喝的"
    if adjective == "beautiful" and KINDS[noun].kind == "place":
        return "美丽的"
    return ADJECTIVES[adjective].split()[0]


def _predicated(adjective: str, noun: str) -> str:
    if adjective == "old" and (other := _old(noun)):
        return "老" if other == "年老的" else other.rstrip("的")
    if adjective == "good" and noun in DRINKABLE:
        return "好喝"
    if adjective == "beautiful" and KINDS[noun].kind == "place":
        return "美丽"
    return ADJECTIVES[adjective].split()[-1]


def _old(noun: str) -> str | None:
    """老 of what lives, but not of 老鼠; 旧 of things."""
    if KINDS[noun].animate:
        return "年老的" if NOUNS[noun][0] == "老" or noun in ("man", "woman", "elephant") else "老"
    return "老" if noun in OLD_PLACES else "古老的" if noun in ANCIENT else None
