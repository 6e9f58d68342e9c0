# ruff: noqa: E501 - the documents in here keep their own line lengths
"""What is found and asked in retrieval-agent.jsonl: the pages of a ferry company that does not exist."""

from __future__ import annotations

from dataclasses import dataclass, field

SYSTEM = """\
You answer questions of passengers of Saltline Ferries, by chat. Rely only on the documents given in <doc>
tags; name the document you used in brackets, for example [bikes#1]. If they do not answer the question, say
so and offer to pass it on. Amounts are in euros. Never promise a refund: explain the rule and where to claim."""

STYLE = """\
Tone: friendly, short, no exclamation marks. Times in 24-hour form. If a rule has an exception that may apply
to the passenger, mention it in one sentence."""

TITLES = {
    "bikes#1": "Bicycles on board",
    "bikes#2": "Bicycles: groups and trailers",
    "times-summer#3": "Summer timetable, Skerra line",
    "times-winter#3": "Winter timetable 2024/25, Skerra line",
    "fares#1": "Fares, foot passengers",
    "fares#2": "Fares, vehicles and bicycles",
    "fares#5": "Discounts",
    "dogs#1": "Dogs and other animals",
    "faq#11": "Question: may my dog come along?",
    "weather#1": "Cancelled sailings",
    "conditions#7": "Conditions of carriage, section 7: delay and cancellation",
    "conditions#9": "Conditions of carriage, section 9: contracts through third parties",
    "refunds#1": "How to claim a refund",
    "agency#2": "Partner handbook: commission and rebooking",
    "parking#1": "Parking at Port Ronan",
    "meals#1": "Food on board",
    "access#1": "Wheelchairs and step-free access",
    "news#44": "News: work on the Skerra pier",
    "booking:R7K2QD": "Booking R7K2QD",
}

DOCS = {
    "bikes#1": """\
Bicycles travel on the car deck of every sailing, except on the fast boat, which takes none. On Saturdays and
Sundays from May to September there are 24 places per sailing, and they have to be booked with the ticket; on
other days you may turn up with a bicycle without a reservation. Be at the ramp 20 minutes before departure.
Electric bicycles count as bicycles if the battery stays in its holder. Charging on board is not possible.""",
    "bikes#2": """\
Groups of eight or more bicycles are loaded before the cars and need a group booking at least two working days
ahead. Trailers and cargo bicycles longer than 2.2 metres need a place for a motorcycle (see fares). Tandems
count as two bicycles.""",
    "times-summer#3": """\
Port Ronan to Skerra, 1 May to 30 September
Monday to Friday   06:15  07:40*  09:30  12:00  15:10  17:45  20:00
Saturday           07:40  09:30  12:00  15:10  17:45
Sunday, holidays   07:40  10:15  13:00  16:30  19:10
* fast boat, foot passengers only
The crossing takes 1 hour 25 minutes, the fast boat 50 minutes. The ramp closes 10 minutes before departure.""",
    "times-winter#3": """\
Port Ronan to Skerra, 1 October 2024 to 30 April 2025
Monday to Friday   07:10  12:00  16:40
Saturday           08:30  15:10
Sunday, holidays   10:15  16:30
From 6 January to 14 February the 16:40 sails on request only. Crossing time 1 hour 25 minutes.""",
    "fares#1": """\
Foot passengers, Skerra line, one way. Adult 14.80. Young person, 12 to 17 years, 9.20. Child, 4 to 11 years,
6.40. Under 4 years free of charge. Day return: one and a half times the single fare, both crossings on the
same day. Islanders with a card pay half. The fast boat costs 4.00 more for each person of any age.""",
    "fares#2": """\
Vehicles and bicycles, Skerra line, one way, without passengers. Bicycle 5.50, also electric. Motorcycle and
cargo bicycle 12.60. Car up to 5 metres 38.00, up to 6 metres 46.00, each further half metre 6.00. Trailer as
a car of its length, less a quarter. On Friday afternoon and Sunday evening in July and August cars pay 8.00
more. Bicycles are never charged a supplement.""",
    "fares#5": """\
Families: with two paying adults, the first child pays nothing and every further one half, except on the fast
boat. Groups from ten persons: a tenth off. Students with a card: a fifth off from Monday to Thursday. Discounts
cannot be combined; the cheapest is taken by itself at the counter and on the web site, but not by agencies.""",
    "dogs#1": """\
Dogs travel free of charge. On deck and in the aft saloon they stay on a short lead; in the other saloons only
assistance dogs are allowed. On the fast boat dogs need a carrier or a muzzle, and there are six places, first
come, first served. Cats and small animals travel in a closed carrier anywhere except in the restaurant.""",
    "faq#11": """\
May my dog come along? Yes, free of charge, on a short lead on deck and in the aft saloon. On the fast boat with
a carrier or a muzzle.""",
    "weather#1": """\
If a sailing is cancelled because of weather, tickets stay valid for any sailing of the same line within 14
days, without a new booking, as far as there is room. Reserved places for cars and bicycles do not carry over:
please reserve again, free of charge. Whoever does not want to travel any more gets the fare back. Meals and
nights in a hotel are not paid for in case of weather. News come by text message to the number in the booking,
as a rule two hours before departure.""",
    "conditions#7": """\
7.1 The carrier announces departures to the best of its knowledge; times are not part of the contract.
7.2 A departure counts as delayed when the ship leaves more than 60 minutes after the announced time. The
passenger may then withdraw and is repaid the fare within 14 days.
7.3 A departure counts as cancelled when it does not take place on the announced day. The passenger chooses
between repayment and carriage on the next departure with free places.
7.4 In case of delay for reasons within the carrier's control, in particular lack of crew and technical faults
of the ship, the passenger is owed a quarter of the fare from 60 minutes and half of it from 120 minutes.
7.5 Reasons outside the carrier's control are, in particular: wind of force 8 and more at the measuring buoy off
Skerra, fog with a sight below 500 metres, ice, orders of the harbour office, industrial action of third
parties, damage to piers and ramps that the carrier has not caused.
7.6 In cases of 7.5 no compensation is owed beyond repayment or carriage under 7.3. The carrier provides shelter
in the terminal, and warm drinks from a waiting time of 90 minutes.
7.7 Claims are to be made within two months, in writing, with the number of the booking. A claim through the web
form is a claim in writing. The carrier answers within 30 days.
7.8 If a departure is missed because a connecting departure of the same carrier was late, both count as one
journey, provided that they were booked together and 30 minutes lay between them.
7.9 Vehicles whose drivers are not at the ramp 20 minutes before departure may be replaced by waiting ones; the
fare is not repaid in that case.
7.10 Bicycles and other reserved places follow the ticket: if the ticket is carried over, the place is granted
again where there is room, and repaid where there is none.""",
    "conditions#9": """\
9.1 Whoever books through an agency or platform has two contracts: one about the mediation with the agency and one
about the carriage with us. 9.2 Repayments go the way the money came: to the agency, which passes them on within
seven days. 9.3 Fees of the agency are not repaid by us. 9.4 Changes of a booking made through an agency are made
by the agency; on the day of travel the counter may help.""",
    "refunds#1": """\
To claim, open the web form "Refund", enter booking number and name, and choose the sailing. Bookings made at the
counter need a photograph of the ticket. We pay to the card or account used for the booking, as a rule within
seven working days. Bookings made through an agency are repaid to the agency.""",
    "agency#2": """\
INTERNAL. Partners receive 7 percent on fares and none on supplements. A rebooking within the season costs the
partner 3.00, waived in case of weather. Partners may not charge more than 5.00 to the passenger for it.""",
    "parking#1": """\
Car park P2 lies five minutes on foot from the terminal. 9.00 a day, 45.00 a week. There is no parking on Skerra
for visitors' cars between June and August. Bicycles may be left at the racks in front of the terminal.""",
    "meals#1": """\
The restaurant opens 20 minutes after departure. Soup of the day, sandwiches, children's plate. No kitchen on the
fast boat. Orders for groups at least one day ahead.""",
    "access#1": """\
Two of the three ships have a lift between car deck and saloon; on the Maire there are 14 steps. Please tell us when
booking, so that the right ship is put on. Wheelchairs can be borrowed at both terminals.""",
    "news#44": """\
12 June to 4 July: the outer pier of Skerra is being repaired. Foot passengers land at the inner pier, 400 metres
from the village. Bicycles and cars are not affected. Allow ten minutes more for the last bus.""",
    "booking:R7K2QD": """\
Booking R7K2QD, made 2026-05-02 through agency "Island Days" (partner 0417)
Passengers: 2 adults, 1 child (9 years); bicycles: 2; dog: 1
Outward: Sunday 2026-06-14, 07:40, Port Ronan to Skerra, ship Maire
Return: Tuesday 2026-06-16, 17:45, Skerra to Port Ronan
Paid: 83.00 by card ending [masked]; agency's fee 6.00
Places for bicycles: reserved outward, not needed on the return
Status: outward sailing CANCELLED 2026-06-14 05:31 (wind), not yet rebooked""",
}


@dataclass(frozen=True)
class Hit:
    """One candidate of a search: its score, and why it was left out (None: kept)."""

    doc: str
    score: float
    reason: str | None = None


@dataclass(frozen=True)
class Turn:
    """One question and what was done to fit the answer's context into the budget."""

    question: str
    query: str
    hits: tuple[Hit, ...]
    rationale: str
    answer: str
    cut: dict[str, int] = field(default_factory=dict)
    """Documents cut to fit, with the number of lines that stay."""
    drop: tuple[str, ...] = ()
    """Documents and messages that the budget step drops after selection."""
    missing: tuple[str, str, str] | None = None
    """Question, severity and status of something that is not there."""
    resolves: str | None = None
    """The document that answers what was missing before."""
    pinned: tuple[str, ...] = ()
    """Documents that the policy never drops."""


TURNS = (
    Turn(
        "Can we take our bikes on the 7:40 to Skerra on Sunday 14 June?",
        "bicycle sailing 07:40 Sunday Skerra June",
        (
            Hit("bikes#1", 0.83), Hit("times-summer#3", 0.79), Hit("bikes#2", 0.55),
            Hit("times-winter#3", 0.52, "stale"), Hit("parking#1", 0.31, "low_relevance"),
            Hit("meals#1", 0.12, "low_relevance"),
        ),
        "Three passages above 0.5; the winter timetable ended on 30 April 2025.",
        """\
Yes. The 07:40 on Sundays is an ordinary ferry and takes bicycles; only on weekdays is the 07:40 the fast boat
[times-summer#3]. On Sundays in summer bicycle places have to be booked with the ticket [bikes#1].""",
    ),
    Turn(
        "What does that cost for two adults, a nine-year-old and two bikes, one way?",
        "fare adults child bicycle one way discount family",
        (
            Hit("fares#1", 0.88), Hit("fares#2", 0.86), Hit("fares#5", 0.71), Hit("bikes#1", 0.64),
            Hit("times-summer#3", 0.33, "low_relevance"), Hit("bikes#2", 0.30, "low_relevance"),
        ),
        "Fares first; the rule about reservations stays in, with a lower score.",
        """\
40.60: two adults at 14.80 [fares#1], the child free with two paying adults [fares#5], and two bicycles at 5.50
[fares#2]. The family discount is not given by agencies.""",
    ),
    Turn(
        "We also have a dog.",
        "dog on board ferry rules price",
        (
            Hit("dogs#1", 0.91), Hit("bikes#1", 0.69), Hit("fares#2", 0.47), Hit("fares#1", 0.44),
            Hit("faq#11", 0.90, "duplicate"), Hit("access#1", 0.22, "low_relevance"),
            Hit("fares#5", 0.41, "budget_limit"),
        ),
        "faq#11 says the same as dogs#1 in fewer words; fares#5 would be the fifth document.",
        """\
The dog travels free of charge, on a short lead on deck or in the aft saloon [dogs#1]. The price stays 40.60.""",
    ),
    Turn(
        "The forecast says gale. What happens if it is cancelled?",
        "cancelled sailing weather ticket valid refund bicycle place",
        (
            Hit("weather#1", 0.93), Hit("conditions#7", 0.82), Hit("refunds#1", 0.66),
            Hit("bikes#1", 0.40), Hit("news#44", 0.28, "low_relevance"), Hit("dogs#1", 0.19, "low_relevance"),
            Hit("fares#1", 0.17, "low_relevance"),
        ),
        "Section 7 is long; its first points answer the question.",
        """\
Your tickets stay valid for 14 days on the same line, or you get the fare back [weather#1]. The bicycle places
have to be reserved again, free of charge. Hotels and meals are not paid for in case of weather
[conditions#7].""",
        cut={"conditions#7": 10},
    ),
    Turn(
        "It was cancelled this morning. We booked through Island Days, does that change anything?",
        "cancelled sailing booked through agency refund rebooking",
        (
            Hit("conditions#9", 0.90), Hit("weather#1", 0.84), Hit("refunds#1", 0.81),
            Hit("agency#2", 0.78, "policy_blocked"), Hit("conditions#7", 0.58, "too_large"),
            Hit("booking:?", 0.0, "permission_missing"),
        ),
        "agency#2 is internal. The booking itself cannot be read without its number.",
        """\
The rules about the sailing are the same, but money goes back the way it came: through Island Days, which passes
it on within seven days, without its fee [conditions#9]. If you give me the booking number, I can look at what
applies to yours.""",
        missing=("Which booking is this about? The number has six characters.", "warning", "open"),
    ),
    Turn(
        "R7K2QD. Can we still travel today, all of us, with the bikes, and if not: what do we get back, by when, "
        "and where do we have to ask for it?",
        "rebook cancelled booking same day bicycle place refund agency claim deadline",
        (
            Hit("booking:R7K2QD", 1.0), Hit("conditions#7", 0.86), Hit("weather#1", 0.85),
            Hit("conditions#9", 0.83), Hit("refunds#1", 0.80), Hit("times-summer#3", 0.72), Hit("bikes#1", 0.70),
            Hit("fares#5", 0.35, "low_relevance"),
        ),
        "The policy pins everything a claim may depend on: nothing of it may be cut.",
        """\
On Sunday there are the 10:15, 13:00, 16:30 and 19:10 [times-summer#3]; your tickets are valid, the bicycle places
have to be reserved again [weather#1]. The Maire has no lift, if that matters. If you do not travel: 83.00 go back
to Island Days, which passes them on within seven days; its fee of 6.00 does not [conditions#9]. Claims within two
months, in writing or by the web form [conditions#7, refunds#1].""",
        resolves="booking:R7K2QD",
        pinned=("booking:R7K2QD", "conditions#7", "weather#1", "conditions#9", "refunds#1", "times-summer#3",
                "bikes#1"),
    ),
    Turn(
        "Then please the 13:00, with the bikes.",
        "sailing 13:00 Sunday bicycle reservation rebook agency counter",
        (
            Hit("booking:R7K2QD", 1.0), Hit("times-summer#3", 0.88), Hit("bikes#1", 0.81),
            Hit("weather#1", 0.77), Hit("conditions#9", 0.74), Hit("refunds#1", 0.29, "low_relevance"),
            Hit("conditions#7", 0.36, "superseded_by_summary"),
        ),
        "Section 7 was explained in the last answer.",
        """\
As said, an agency's booking can only be changed by the agency or, today, at the counter: please show R7K2QD
there before 12:40 and ask for two bicycle places [bikes#1]. The tickets themselves are valid.""",
        drop=("message-1", "message-2", "message-3", "message-4", "conditions#9"),
    ),
    Turn(
        "Thank you. One line for my partner, please.",
        "summary of rebooking 13:00 counter bicycle",
        (
            Hit("booking:R7K2QD", 1.0), Hit("bikes#1", 0.66), Hit("times-summer#3", 0.60),
            Hit("weather#1", 0.34, "low_relevance"), Hit("news#44", 0.51),
        ),
        "The repair of the pier concerns everybody who lands on Skerra on 14 June.",
        """\
13:00 instead of 07:40, be at the counter before 12:40 with R7K2QD for the two bicycle places; foot passengers land
at the inner pier, ten minutes more to the bus [news#44].""",
        drop=("message-5", "message-6"),
    ),
)  # fmt: skip
