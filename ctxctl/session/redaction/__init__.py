"""The one redactor: what a trace says was redacted, no surface shows.

A surface is whatever shows a text or a name of a trace: `replay`, `watch`, `show`, `diff`, `why`, `blame`,
`log`, `find`, `lint`, `validate`, every export, the UI, and the problems that any of them reports.  They all
read a trace through an `Inspector`, whose trace is masked: what was redacted is learnt once, when the trace
is opened, and nothing leaves it that was not masked.  The rule:

- **A redaction** is a `context.redaction.applied`, or an item whose own `redaction_state` says so (unless it
  was masked by `ctxctl` before it was written: then the trace never said it).  It makes
  secret what the item said in full before, in all its versions, and in blocks where the item has no text.
- **Which part**: where a redacted version, or what a redaction puts in its place, shows what was left, the
  stretches that are gone; else all of it.  Values inside structured content are secret one by one as well,
  and so is what has the shape of a key, of a long number or of an address inside a secret text.
- **From when**: from the first line on.  The model did see it, so frames keep its place, its digest and its
  tokens; the words are gone.  Who must see them reads the file.  A session that is still being written is
  masked from its redaction on.
- **Where**: in every text, of the item, of other items, in blocks, titles, reasons, metadata, keys and ids;
  plain, or as JSON, a URL or HTML spells it inside a text.  In a text `[redacted]` stands in its place; in a
  name `[redacted N]`, so that two names stay two: N is the same for a secret throughout a trace (`pN`: a
  stretch inside a secret text; `wN`: words of it).
- **How much of it**: an occurrence of a whole stretch, and `shingles.RUN` words in a row of it,
  whatever stands between the words; but not what others said before the item came, as a phrase that everybody
  uses is nobody's secret, and not a paraphrase.  Stretches of less than `secrets.LEAST` characters are hidden
  in their own item only: they come about by chance.
- **What stays**: the names of fields, words of the standard's vocabulary, names of models, digests and
  numbers, without which nothing could be read, and an id that was one before a secret text named it.
"""

from ctxctl.session.redaction.untouched import Redactor, redactor_of

__all__ = ["Redactor", "redactor_of"]
