"""The words of the sentiment corpus: by what they are said of, those that praise and those that blame."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.replace("\n", " ").split(",") if word.strip())


GOOD = {
    "any": _words("""good, great, excellent, wonderful, fantastic, superb, amazing, outstanding, brilliant, terrific,
        marvellous, magnificent, splendid, fabulous, perfect, flawless, impressive, remarkable, exceptional, lovely,
        delightful, pleasant, pleasing, enjoyable, satisfying, fine, nice, awesome, incredible, phenomenal, stunning,
        gorgeous, beautiful, charming, admirable, first-rate, top-notch, world-class, exquisite, sublime, glorious,
        solid, decent, refreshing, special, memorable, unforgettable, inspiring, ideal, favourable, rewarding,
        worthwhile, commendable, spectacular, breathtaking, extraordinary, tremendous, sensational, elegant, thoughtful,
        generous, likeable, valuable, promising, encouraging, positive"""),
    "film": _words("""gripping, moving, touching, hilarious, funny, witty, clever, thrilling, exciting, captivating,
        compelling, engaging, entertaining, heartwarming, original, inventive, imaginative, masterful, powerful, poetic,
        intelligent, believable, convincing, absorbing, riveting, enchanting, magical, fascinating, insightful, sharp,
        well-written, well-acted, well-paced, fresh, honest, subtle, profound, suspenseful, uplifting, charismatic,
        graceful, tender, sincere, nuanced, rich, lively, energetic, stylish, bold, daring"""),
    "food": _words("""delicious, tasty, fresh, flavourful, juicy, crispy, tender, crunchy, creamy, aromatic, savoury,
        mouth-watering, yummy, scrumptious, heavenly, succulent, well-seasoned, homemade, hearty, divine, appetizing,
        velvety, fragrant, authentic, perfectly cooked, warm, rich, ripe, sweet, balanced"""),
    "product": _words("""reliable, sturdy, durable, fast, quick, quiet, comfortable, light, practical, handy, useful,
        accurate, precise, responsive, smooth, efficient, powerful, sleek, robust, versatile, intuitive, easy to use,
        well-made, well-designed, affordable, dependable, convenient, bright, crisp, clear, waterproof, long-lasting,
        ergonomic, compact, seamless, trustworthy, user-friendly, helpful, clean, generous"""),
    "people": _words("""friendly, kind, helpful, polite, attentive, welcoming, professional, patient, cheerful, warm,
        courteous, caring, competent, skilled, knowledgeable, gracious, considerate, respectful, prompt, efficient,
        honest, accommodating, hospitable, talented, supportive, charming, responsive, diligent, trustworthy, smiling"""),
    "place": _words("""clean, cosy, comfortable, spacious, quiet, peaceful, bright, tidy, spotless, luxurious, relaxing,
        inviting, modern, stylish, picturesque, charming, romantic, well-kept, sunny, airy, immaculate, tranquil,
        convenient, safe, scenic, warm, welcoming, idyllic"""),
}
BAD = {
    "any": _words("""bad, terrible, awful, horrible, dreadful, poor, disappointing, mediocre, lousy, atrocious, abysmal,
        appalling, pathetic, miserable, disastrous, unacceptable, unpleasant, annoying, frustrating, irritating, ugly,
        useless, worthless, pointless, laughable, embarrassing, inferior, inadequate, lacking, forgettable, weak,
        unsatisfying, underwhelming, ridiculous, shoddy, second-rate, substandard, painful, depressing, dismal,
        nasty, hideous, horrendous, horrid, lame, sloppy, flawed, faulty, unbearable, intolerable, infuriating,
        tiresome, wretched, ghastly, woeful, deplorable, shameful, offensive, hopeless, unsatisfactory, troubling,
        worrying, negative, upsetting, regrettable, overrated, deficient"""),
    "film": _words("""boring, dull, predictable, tedious, slow, shallow, silly, stupid, clichéd, pretentious, confusing,
        incoherent, lifeless, unfunny, wooden, contrived, bland, uninspired, unoriginal, flat, monotonous, pompous,
        melodramatic, cheesy, messy, muddled, overlong, unconvincing, implausible, hollow, cynical, vulgar, dreary,
        badly written, badly acted, soulless, sentimental, formulaic, repetitive, clumsy, heavy-handed, senseless,
        humourless, lazy, derivative, amateurish, tasteless, charmless, mindless, stale"""),
    "food": _words("""bland, overpriced, stale, tasteless, greasy, soggy, burnt, undercooked, overcooked, dry, cold, rotten, salty,
        bitter, rubbery, chewy, watery, flavourless, inedible, disgusting, sour, lukewarm, tough, oily, revolting,
        mouldy, raw, spoiled, lumpy, mushy, sickening, unappetizing, limp"""),
    "product": _words("""cheap-looking, overpriced, unreliable, flimsy, fragile, slow, noisy, uncomfortable, heavy, impractical, inaccurate, broken,
        defective, clunky, buggy, bulky, awkward, unstable, dangerous, unresponsive, inefficient, blurry, dim, scratchy,
        hard to use, badly made, badly designed, expensive, leaky, loose, sluggish, unusable, glitchy, confusing,
        complicated, wobbly, outdated, rusty, dirty, poorly assembled, error-prone, cumbersome"""),
    "people": _words("""rude, unfriendly, unhelpful, impolite, careless, arrogant, incompetent, impatient, slow, grumpy,
        indifferent, lazy, hostile, cold, dishonest, unprofessional, inattentive, disrespectful, clueless, dismissive,
        aggressive, condescending, forgetful, disorganised, mean, ignorant, sullen, unresponsive, inept, negligent"""),
    "place": _words("""overpriced, dirty, filthy, noisy, cramped, smelly, dark, shabby, damp, cold, uncomfortable, crowded, run-down,
        dusty, unsafe, stuffy, gloomy, loud, dingy, mouldy, messy, bleak, drab, grimy, rundown, depressing, neglected,
        unwelcoming, chaotic"""),
}

# What is spoken of; after the bar, those in the plural.
THINGS = {
    "film": _words("""film, movie, plot, story, ending, acting, script, soundtrack, dialogue, cast, direction, series,
        book, novel, play, show, first half, second half, lead actor, screenplay, camera work, album, concert, humour,
        documentary, performance, musical, villain, pacing, cinematography"""),
    "food": _words("""food, pizza, soup, pasta, breakfast, bread, coffee, dessert, salad, steak, sauce, fish, rice, cake,
        curry, burger, chicken, meal, dinner, sandwich, menu, wine, cheese, lunch, omelette, risotto, dish, tea, stew,
        ice cream"""),
    "product": _words("""phone, camera, laptop, battery, screen, keyboard, printer, vacuum cleaner, kettle, blender,
        bicycle, mattress, jacket, watch, tablet, speaker, charger, lamp, chair, backpack, toaster, app, software, car,
        router, microphone, tent, drill, cable, sound, design, build quality, picture quality, packaging, oven, fridge,
        interface, update, website, lens"""),
    "people": _words("""staff, service, waiter, manager, receptionist, driver, guide, teacher, doctor, team, support,
        customer service, nurse, chef, cook, host, owner, crew, barber, salesman, waitress, mechanic, dentist, trainer,
        plumber, landlord"""),
    "place": _words("""hotel, room, apartment, restaurant, bathroom, lobby, garden, beach, pool, café, bar, bedroom,
        terrace, museum, park, campsite, hostel, gym, cinema, shop, train, bus, cabin, kitchen, station, airport, flat,
        neighbourhood"""),
}
MANY = {
    "film": _words(
        "characters, actors, jokes, songs, special effects, dialogues, costumes, lyrics, performances, scenes"
    ),
    "food": _words("vegetables, fries, noodles, pancakes, cocktails, portions, desserts, dumplings, cookies, starters"),
    "product": _words(
        "headphones, shoes, speakers, buttons, boots, instructions, pictures, controls, earphones, wheels"
    ),
    "people": _words(
        "waiters, employees, nurses, guides, teachers, hosts, drivers, people at the desk, cooks, doctors"
    ),
    "place": _words("rooms, beds, toilets, surroundings, corridors, views, streets, seats, gardens, showers"),
}
KEY = _words("""NorthStar, Belltower, Oakridge, Lumina, Pinewood, Vega, Harbor, Silverline, Redwood, Atlas, Meridian,
    Cobalt, Juniper, Falcon, Summit, Orchard, Beacon, Granite, Nimbus, Delta, Orion, Polaris, Zenith, Cascade, Evergreen,
    Keystone, Lakeside, Monarch, Pacific, Quantum, Riverton, Sterling, Titan, Union, Vertex, Westbrook, Apex, Bluebird,
    Crestview, Dynamo, Everest, Frontier, Glacier, Highland, Ironwood, Jupiter, Kestrel, Liberty, Magnolia, Nova""")
TRADE = _words("""Systems, Motors, Foods, Energy, Bank, Software, Airlines, Pharma, Media, Retail, Steel, Chemicals,
    Semiconductors, Logistics, Insurance, Electronics, Telecom, Robotics, Mining, Holdings, Technologies, Corporation,
    Industries, Group, Labs, Networks, Devices, Microsystems""")

# Money: what it is good to have more of, and what it is bad to have more of.
GAINS = _words("""EPS, GAAP EPS, diluted EPS, non-GAAP EPS, revenue, revenue, total revenue, net income, net profit, operating profit, operating income, gross profit,
    pre-tax profit, free cash flow, operating cash flow, cash flow, gross margin, operating margin, turnover, net sales,
    like-for-like revenue, advertising revenue, subscription revenue, data center revenue, cloud revenue, export revenue,
    quarterly profit, annual profit, services revenue, gaming revenue, production,
    order intake, the order backlog, market share, the dividend, output, demand, return on equity, passenger traffic,
    licence revenue, automotive revenue, recurring revenue, GAAP net income, non-GAAP operating income""")
MANY_GAINS = _words("""sales, orders, profits, exports, earnings, bookings, deliveries, margins, shipments, store sales,
    online sales, subscriptions, earnings per share, diluted earnings per share, car sales, retail sales, dividends,
    adjusted earnings per share, earnings per diluted share, cash reserves, royalties, contract wins, GAAP earnings,
    quarterly sales, subscriber numbers""")
PAINS = _words("""debt, net debt, the net loss, the operating loss, the quarterly loss, the loss per share, the deficit,
    the annual loss, the adjusted loss, the pre-tax loss, customer churn, interest expense, the trade deficit,
    overall indebtedness, the backlog of complaints, staff turnover, the cash burn""")
MANY_PAINS = _words("""losses, net losses, operating losses, costs, operating expenses, expenses, debts, bad loans,
    write-downs, impairment charges, production costs, energy costs, restructuring charges, cancellations, defaults,
    unsold inventories, legal costs, customer complaints, product returns, loan losses, liabilities, credit losses""")
RISE = _words(
    """rose, grew, increased, climbed, jumped, surged, soared, advanced, went up, shot up, edged up, gained"""
)
RISE_LOSS = _words("""rose, grew, increased, climbed, jumped, surged, soared, widened, went up, deepened, mounted, ballooned,
    swelled, shot up""")
FALL = _words("""fell, declined, decreased, dropped, slipped, plunged, slumped, shrank, tumbled, sank, went down,
    collapsed, slid, dwindled, edged down""")
FALL_LOSS = _words("""fell, declined, decreased, dropped, narrowed, shrank, went down, sank, eased, came down, slid""")

# News: what it is good and bad to have more of, in a country or a town.
BLESSINGS = _words("""employment, tourism, life expectancy, literacy, household income, rainfall after the drought,
    school attendance, consumer confidence, economic growth, the harvest, air quality, solar power production, trade,
    the minimum wage, the birth weight of babies, voter turnout, funding for hospitals, public trust, food security""")
CURSES = _words("""unemployment, crime, poverty, pollution, inflation, homelessness, corruption, violence, hunger,
    youth unemployment, the death toll, the infection rate, air pollution, the jobless rate, malnutrition, child labour,
    the number of accidents, the number of burglaries, the number of traffic deaths, household debt, deforestation,
    the crime rate, the number of bankruptcies, the number of wildfires, the poverty rate, illiteracy""")

GOOD_NEWS = _words("""rescuers saved all {number} {miners|sailors|hikers|passengers|fishermen},
    the {two sides|neighbours|rebels and the government} signed a {lasting|historic|long-awaited} peace agreement,
    {doctors|researchers|scientists} found a cure for the disease, a new vaccine protects children from the virus,
    the town celebrated the opening of its new {hospital|school|library|bridge|park|theatre},
    the national team won the {cup|championship|gold medal|final}, the missing {girl|boy|couple} came home safe and sound,
    the government will build {number} new {schools|hospitals|homes|playgrounds},
    volunteers cleaned the {river|beach|forest}, the endangered {tigers|whales|eagles|turtles} are returning,
    the court freed an innocent {man|woman}, the strike ended with a fair deal, students won a prize for their {invention|research},
    the ceasefire is holding, a generous donor paid for the treatment of {number} children,
    the factory hired {number} people, firefighters put out the blaze before anyone was hurt,
    the hostages were released unharmed, the economy recovered faster than expected, farmers expect a record harvest,
    nobody was hurt in the {accident|fire|storm|crash}, the pilot prevented a disaster, the patient recovered completely,
    the two countries ended their long war, the river is clean again, neighbours raised enough money to save the {school|shop|library},
    engineers averted a blackout, the reform lifted {number} thousand families out of poverty, the museum reopened to cheering crowds,
    the {mayor|president|minister} was praised for {her|his} honesty, the orchestra was applauded for ten minutes,
    the dispute was settled peacefully, doctors save more newborn babies than ever before""")
BAD_NEWS = _words("""an earthquake destroyed {number} homes, a {flood|fire|storm|bomb|landslide} killed {number} people,
    the peace talks collapsed, the {factory|mill|shipyard|mine} closed and {number} people lost their jobs,
    a {train|bus|plane|ferry} crash injured {number} passengers, police arrested the {mayor|minister|banker} for fraud,
    the disease is spreading out of control, the national team lost the final, war broke out at the border,
    a drought ruined the harvest, thieves stole paintings from the museum, an oil spill poisoned the {river|coast|lake},
    the {hospital|school|library} was closed for lack of money, the hostages were killed, the bridge collapsed,
    {number} people are still missing, the scandal forced the {minister|president|director} to resign,
    the two sides failed to reach an agreement, the court sent an innocent {man|woman} to prison, prices doubled overnight,
    the ceasefire was broken, rescuers found no survivors, the economy slid into recession, thousands fled from the fighting,
    the vaccine failed to protect patients, hackers stole the data of {number} thousand customers, the water is no longer safe to drink,
    the epidemic claimed {number} more lives, riots left the city centre in ruins, a blackout paralysed the capital,
    the {mayor|president|minister} was accused of lying, the endangered {tigers|whales|eagles|turtles} are dying out,
    a gunman wounded {number} people, the festival was cancelled after threats, the crisis is getting worse every day""")
