"""Tests of `fetch_meetings.py` on a meeting that is made up: `python3 -m unittest discover training`."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from fetch_meetings import MeetingSource, hashed, join, main

MEETING = "data/ALL/train/made_up.json"
COMMIT = "0" * 40
TURNS = [
    ("Chair", "Good morning .  We meet in Leer ."),
    ("Ilse", "The café is closed ."),
    ("Chair", "Then we meet in Emden ."),
]
TEXTS = [" ".join(text.split()) for _, text in TURNS]


def labels(hashes):
    """Labels of the made-up meeting."""
    return f"""## {MEETING} | commit {COMMIT} | 0-2
@ 0 {len(TEXTS[0])} {hashes[0]}
- 0-14 | small | me
- 15-32 | state | us | keep
@ 1 {len(TEXTS[1])} {hashes[1]}
- 0-20 | state | thing | neg ctx=0.1
@ 2 {len(TEXTS[2])} {hashes[2]}
- 0-23 | state | us | keep ctx=1.0
> 2.0 ends 0.1
> 2.0 none 1.0
"""


JOINED = f"""## {MEETING} | commit {COMMIT} | 0-2
@ 0 Chair: Good morning . We meet in Leer .
- Good morning . | small | me
- We meet in Leer . | state | us | keep
@ 1 Ilse: The café is closed .
- The café is closed . | state | it:thing | neg ctx=0.1
@ 2 Chair: Then we meet in Emden .
- Then we meet in Emden . | state | us | keep ctx=1.0
> 2.0 ends 0.1
> 2.0 none 1.0
"""


class JoinTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        path = self.folder / "clone" / MEETING
        path.parent.mkdir(parents=True)
        turns = [{"speaker": speaker, "content": text} for speaker, text in TURNS]
        path.write_text(json.dumps({"meeting_transcripts": turns}), encoding="utf-8")
        self.hashes = [hashed(text) for text in TEXTS]

    def test_labels_of_the_same_text_get_its_words(self):
        source = MeetingSource(self.folder / "clone")
        self.assertEqual(join(labels(self.hashes), source), (JOINED, 3, 0))

    def test_a_url_is_read_as_a_checkout_is(self):
        source = MeetingSource(None, (self.folder / "clone").as_uri() + "/{meeting}")
        self.assertEqual(join(labels(self.hashes), source), (JOINED, 3, 0))

    def test_a_turn_of_another_text_is_left_out_with_all_that_refers_to_it(self):
        source = MeetingSource(self.folder / "clone")
        joined, turns, missed = join(labels([self.hashes[0], "0" * 8, self.hashes[2]]), source)
        self.assertEqual((turns, missed), (3, 1))
        self.assertNotIn("café", joined)
        self.assertIn("- Then we meet in Emden . | state | us | keep\n> 2.0 ends 0.1\n", joined)
        self.assertNotIn("1.0", joined)

    def test_a_turn_behind_the_end_of_the_meeting_is_left_out(self):
        source = MeetingSource(self.folder / "clone")
        text = labels(self.hashes).replace("@ 2 ", "@ 3 ").replace("2.0", "3.0")
        joined, turns, missed = join(text, source)
        self.assertEqual((turns, missed), (3, 1))
        self.assertNotIn("> ", joined)

    def test_the_program_writes_the_files_of_the_labels_and_counts(self):
        written = self.folder / "labels" / "train" / "h1" / "01.txt"
        written.parent.mkdir(parents=True)
        out = self.folder / "out"
        arguments = ["--checkout", str(self.folder / "clone"), str(self.folder / "labels"), str(out)]
        for hashes, status, count in [
            (self.hashes, 0, "1 files, 3 turns, 0 of which"),
            (["0" * 8] * 3, 1, "1 files, 3 turns, 3 of which"),
        ]:
            written.write_text(labels(hashes), encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(main(arguments), status)
            self.assertIn(count, told.getvalue())
            self.assertTrue((out / "train" / "h1" / "01.txt").exists())


if __name__ == "__main__":
    unittest.main()
