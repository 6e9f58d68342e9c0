# ruff: noqa: E501 - the documents in here keep their own line lengths
"""What is said and read in notes-assistant.jsonl: prompts, notes, answers."""

from __future__ import annotations

from dataclasses import dataclass

SYSTEM = """\
You are the assistant inside Quire, a notes app. The person writing sees their note on the left and you on
the right. Help with the note they are in; do not rewrite what they did not ask about.

What the app knows arrives in a <system_reminder> behind the person's message:
- [Context: NAME] is sent the first time something is attached,
- [Context updated: NAME] replaces every earlier version of NAME,
- [Context removed: NAME] means it is no longer attached: do not rely on it.
What is not repeated has not changed.

Answer briefly. Offer text that can be pasted as it is. Say when a fact is not in the notes."""

PROFILES = {
    "writer": """\
Agent: Writer. You help to finish a text: gaps, order, tone, plain words. You do not plan or assign work.""",
    "planner": """\
Agent: Planner. You help to get things done in time: who, by when, what is blocked. You work from the open
tasks and the calendar. You do not edit the note.""",
}

_OVERVIEW_1 = """\
1. Repair café, spring term (n12, Neighbourhood) - changed today 15:58
2. Volunteer list (n7, Neighbourhood) - changed 28 Feb
3. Sourdough log (n31, Kitchen) - changed 27 Feb
4. Bike route to the lake (n18, Outdoors) - changed 22 Feb
5. Questions for the landlord (n25, Home) - changed 19 Feb"""

_OVERVIEW_2 = """\
1. Repair café, spring term (n12, Neighbourhood) - changed today 16:14
2. Invitation, draft (n40, Neighbourhood) - changed today 16:13
3. Volunteer list (n7, Neighbourhood) - changed 28 Feb
4. Sourdough log (n31, Kitchen) - changed 27 Feb
5. Bike route to the lake (n18, Outdoors) - changed 22 Feb"""

_EDITOR_1 = """\
Open note: "Repair café, spring term" (n12, Neighbourhood)
Cursor: under the heading "What we still need"

# Repair café, spring term

## When and where
Every second Saturday from 14 March, 14:00 to 17:00, in the hall of the library in Weir Street.

## What we offer
Lamps, radios, toasters, bicycles, clothes. No microwaves, no batteries that are swollen.

## What we still need
- a second soldering station
- somebody for the sewing table
- """

_EDITOR_2 = """\
Open note: "Repair café, spring term" (n12, Neighbourhood)
Cursor: under the heading "What we still need"

# Repair café, spring term

## When and where
Every second Saturday from 14 March, 14:00 to 17:00, in the hall of the library in Weir Street.
Doors open at 13:45. The last repair starts at 16:15.

## What we offer
Lamps, radios, toasters, bicycles, clothes. No microwaves, no batteries that are swollen.

## What we still need
- a second soldering station
- somebody for the sewing table
- a person at the door who writes the numbers"""

_EDITOR_3 = """\
Open note: "Repair café, spring term" (n12, Neighbourhood)
Cursor: under the heading "Who does what"

# Repair café, spring term

## When and where
Every second Saturday from 14 March, 14:00 to 17:00, in the hall of the library in Weir Street.
Doors open at 13:45. The last repair starts at 16:15.

## What we offer
Lamps, radios, toasters, bicycles, clothes. No microwaves, no batteries that are swollen.

## Who does what
| table | 14 March | 28 March |
|---|---|---|
| electronics | Farida, Tom | Farida |
| bicycles | Jonas | Jonas, Mirela |
| sewing | open | Aunt Ruth |
| door | open | open |

## What we still need
- a second soldering station
- a person at the door who writes the numbers"""

_EDITOR_4 = """\
Open note: "Invitation, draft" (n40, Neighbourhood)
Cursor: in the second paragraph

# Come and mend something

Your lamp flickers, the zip is stuck, the bicycle squeaks? Bring it to the library hall in Weir Street on
Saturday 14 March between 14:00 and 17:00. Volunteers mend it with you, not for you.

Repairs cost nothing. There is a box for donations, and coffee.

Please do not bring microwaves or anything with a swollen battery."""

_VOLUNTEERS = """\
# Volunteer list

| name | can | free on | phone |
|---|---|---|---|
| Farida | electronics, soldering | every Saturday | in the group |
| Tom | electronics | 14 March only | in the group |
| Jonas | bicycles | every Saturday | 0151 000 11 |
| Mirela | bicycles, sharpening | from 28 March | in the group |
| Ruth | sewing, buttons, zips | 28 March, 11 April | through Jonas |
| Abel | door, coffee | asks before each date | 0151 000 12 |

Farida has the key to the cupboard with the tools. Ruth does not drive, somebody has to fetch her."""

_ATTENDANCE = """\
date,visitors,items,repaired,turned_away
2025-09-13,31,38,24,4
2025-09-27,27,30,21,2
2025-10-11,44,52,29,11
2025-10-25,39,47,28,9
2025-11-08,46,55,30,14
2025-11-22,41,46,31,7
2025-12-06,52,61,33,18"""

_TASKS_1 = """\
[ ] T1 Ask Abel about the door on 14 March - owner: me - due 6 March
[ ] T2 Borrow the second soldering station from the makerspace - owner: Farida - due 12 March
[ ] T3 Print 40 number tickets - owner: me - due 13 March
[ ] T4 Fetch Ruth on 28 March - owner: nobody - due 28 March
[x] T5 Confirm the hall with the library - owner: me - done 25 February"""

_TASKS_2 = """\
[x] T1 Ask Abel about the door on 14 March - owner: me - done 4 March
[ ] T2 Borrow the second soldering station from the makerspace - owner: Farida - due 12 March
[ ] T3 Print 60 number tickets - owner: me - due 13 March
[ ] T4 Fetch Ruth on 28 March - owner: Jonas - due 28 March
[ ] T6 Hang the invitation in the library - owner: me - due 7 March
[x] T5 Confirm the hall with the library - owner: me - done 25 February"""

_CALENDAR = """\
Fri 6 March   09:00 dentist
Sat 7 March   10:00 library, bring poster
Tue 10 March  18:30 choir
Thu 12 March  18:00 makerspace open evening
Sat 14 March  13:00 to 18:00 repair café (set up from 13:00)
Tue 17 March  18:30 choir"""

_SEARCH_CALL = '{"name": "search_notes", "arguments": {"query": "repair café numbers tickets", "limit": 3}}'
_SEARCH_RESULT = """\
{"hits": [
  {"id": "n9", "title": "Repair café, autumn review", "changed": "2025-12-08",
   "text": "Queue at the door was the main complaint. People came at 14:00 and were seen at 16:00. Idea: paper \
tickets with a number, two per person at most, and a board that shows which number is at which table."},
  {"id": "n12", "title": "Repair café, spring term", "changed": "2026-03-04", "text": "a person at the door who \
writes the numbers"},
  {"id": "n3", "title": "Things the library wants back", "changed": "2025-11-30",
   "text": "two extension leads, the flip chart, the number board"}
]}"""


@dataclass(frozen=True)
class Reply:
    """What one request came back with; `result` is set where it was a tool call."""

    text: str
    kind: str = "assistant_message"
    result: str | None = None


@dataclass(frozen=True)
class Turn:
    """One prompt: what is attached (the person's own first), what each provider returns, what came back.

    A provider that returns None has nothing to say although it is attached: no note is open.
    """

    agent: str
    attached: tuple[str, ...]
    provided: dict[str, str | None]
    prompt: str
    replies: tuple[Reply, ...]
    pause: float = 60.0


_NOTE = "quire:note/n7"
_CSV = "quire:resource/attendance"
_WRITER = ("quire:agent-profile", "quire:editor-state", "quire:notes-overview")
_PLANNER = ("quire:agent-profile", "quire:tasks", "quire:calendar")


def _given(**values: str | None) -> dict[str, str | None]:
    names = {
        "editor": "quire:editor-state", "overview": "quire:notes-overview", "note": _NOTE, "csv": _CSV,
        "tasks": "quire:tasks", "calendar": "quire:calendar",
    }  # fmt: skip
    return {names[key]: value for key, value in values.items()}


TURNS = (
    Turn(
        "writer", _WRITER, _given(editor=_EDITOR_1, overview=_OVERVIEW_1),
        "I want to send this page round tonight. What would a stranger still ask after reading it?",
        (Reply("""\
Three things a newcomer would ask:
1. When do I have to be there? You give opening hours, but not until when a repair can still start.
2. Does it cost anything? The page does not say.
3. Can I just come, or do I sign up? Also not in the note.
The list under "What we still need" ends in an empty bullet."""),),
        pause=5.0,
    ),
    Turn(
        "writer", _WRITER, _given(editor=_EDITOR_1, overview=_OVERVIEW_1),
        "Good points. Give me one sentence for the first of them.",
        (Reply("Doors open at 13:45; the last repair starts at 16:15. (I made the two times up, please check.)"),),
        pause=48.0,
    ),
    Turn(
        "writer", _WRITER, _given(editor=_EDITOR_2, overview=_OVERVIEW_1),
        "Pasted it, the times are right by chance. And I filled in the last bullet. Better?",
        (Reply("""\
Yes. "Writes the numbers" will puzzle people who were not there in autumn. Perhaps: "a person at the door who \
hands out numbered tickets"."""),),
        pause=96.0,
    ),
    Turn(
        "writer", (_NOTE, *_WRITER), _given(editor=_EDITOR_2, overview=_OVERVIEW_1, note=_VOLUNTEERS),
        "I attached the volunteer list. Make a table of who sits where on the first two dates.",
        (Reply("""\
| table | 14 March | 28 March |
|---|---|---|
| electronics | Farida, Tom | Farida |
| bicycles | Jonas | Jonas, Mirela |
| sewing | open | Ruth |
| door | open, ask Abel | open, ask Abel |

Ruth needs somebody to fetch her on the 28th."""),),
        pause=71.0,
    ),
    Turn(
        "writer", (_NOTE, *_WRITER), _given(editor=_EDITOR_3, overview=_OVERVIEW_1, note=_VOLUNTEERS),
        "Table is in. Did we ever write down how the numbered tickets are supposed to work?",
        (
            Reply(_SEARCH_CALL, "tool_call", _SEARCH_RESULT),
            Reply("""\
Yes, in "Repair café, autumn review" (n9): paper tickets with a number, at most two per person, and a board \
that shows which number is at which table. Note n3 says that the board belongs to the library."""),
        ),
        pause=83.0,
    ),
    Turn(
        "writer", (_NOTE, _CSV, *_WRITER),
        _given(editor=_EDITOR_3, overview=_OVERVIEW_1, note=_VOLUNTEERS, csv=_ATTENDANCE),
        "Here are last year's numbers. How many tickets should I print for the first date?",
        (Reply("""\
In autumn you had 27 to 52 visitors and up to 61 items. With two tickets per person at most, 60 is enough for \
a day like the busiest one; on the seven dates together 65 items were turned away."""),),
        pause=64.0,
    ),
    Turn(
        "writer", (_NOTE, _CSV, *_WRITER),
        _given(editor=None, overview=_OVERVIEW_2, note=_VOLUNTEERS, csv=_ATTENDANCE),
        "I closed the page for a moment. How would you call the invitation?",
        (Reply("Come and mend something"),),
        pause=130.0,
    ),
    Turn(
        "planner", (_NOTE, _CSV, *_PLANNER),
        _given(tasks=_TASKS_1, calendar=_CALENDAR, note=_VOLUNTEERS, csv=_ATTENDANCE),
        "Switching to planning. What has to happen before the 14th, and what has no owner?",
        (Reply("""\
Before the 14th, in this order: T1 by Friday (Abel, door), T2 on the 12th, which is the makerspace's open \
evening and in your calendar, T3 by the 13th.
No owner: T4, fetching Ruth on the 28th. Jonas has her number.
Not on the list yet: the invitation. You are at the library on the 7th."""),),
        pause=41.0,
    ),
    Turn(
        "planner", (_NOTE, _CSV, *_PLANNER),
        _given(tasks=_TASKS_2, calendar=_CALENDAR, note=_VOLUNTEERS, csv=_ATTENDANCE),
        "Abel said yes, Jonas fetches Ruth, and I added the poster. Anything that clashes?",
        (Reply("""\
Nothing clashes. The poster fits your visit on Saturday the 7th. The only thing without slack is T2: if the \
open evening on the 12th falls through, there is one day left."""),),
        pause=240.0,
    ),
    Turn(
        "planner", _PLANNER, _given(tasks=_TASKS_2, calendar=_CALENDAR),
        "I took the list and the numbers out again. Remind me: for how many people do I print?",
        (Reply("""\
The numbers are no longer attached, so I can only go by your task list: T3 says 60 tickets."""),),
        pause=35.0,
    ),
    Turn(
        "writer", _WRITER, _given(editor=_EDITOR_4, overview=_OVERVIEW_2),
        "Back to writing. This is the invitation now. Is the second paragraph too short?",
        (Reply("""\
No, it says what people want to know. I would name the donation box last, so that "cost nothing" and "coffee" \
stand together: "Repairs cost nothing, and there is coffee. A box for donations stands at the door."
"""),),
        pause=310.0,
    ),
    Turn(
        "writer", _WRITER, _given(editor=_EDITOR_4, overview=_OVERVIEW_2),
        "I like that. Send it?",
        (Reply("Yes. Nothing in it contradicts the page, and date, place and times agree."),),
        pause=22.0,
    ),
)  # fmt: skip
