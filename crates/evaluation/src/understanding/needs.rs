//! Prompts for need: the memory of a space, and prompts with the lines that a good reply needs.

use chrono::NaiveDate;

use super::lines::{LineError, fields, named, number, read_lines, spoken};
use super::{SpokenText, named};

/// Fewest lines of a space.
const MIN_LINES: usize = 4;

/// Fewest prompts of a space.
const MIN_PROMPTS: usize = 36;

named! {
    /// Need of a prompt for memory.
    PromptKind {
        /// Asks for something that memory holds.
        Explicit = "explicit",
        /// Does not name it, yet a good reply needs it.
        Implicit = "implicit",
        /// Falls under a standing instruction.
        Rule = "rule",
        /// Needs no memory.
        Unneeded = "none",
        /// Shares words or topic with memory that changes nothing.
        Near = "near",
        /// Asks for something personal that memory does not hold.
        Missing = "missing",
    }
}

impl PromptKind {
    /// True where a good reply needs lines of memory.
    pub fn needs_memory(self) -> bool {
        self <= Self::Rule
    }
}

/// The memory of a person or a team, and prompts that meet it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedSpace {
    /// Number, the name of its file.
    pub number: String,
    /// Tag of the main language.
    pub language: String,
    /// The memory, in order of time.
    pub lines: Vec<MemoryLine>,
    /// The prompts, at least 36.
    pub prompts: Vec<LabelledPrompt>,
}

/// A turn that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLine {
    /// Day on which it was said.
    pub day: NaiveDate,
    /// Speaker and words.
    pub said: SpokenText,
}

/// A prompt with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledPrompt {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Need for memory.
    pub kind: PromptKind,
    /// The prompt.
    pub text: String,
    /// Turns just before it; empty where it leans on none.
    pub before: Vec<SpokenText>,
    /// Places in memory that a good reply needs.
    pub needed: Vec<usize>,
    /// Places in memory that could help.
    pub helpful: Vec<usize>,
}

impl NeedSpace {
    /// Reads a file of one space. Fails at the first line that is not of the format or contradicts
    /// one before it.
    pub fn read(file_number: &str, text: &str) -> Result<Self, LineError> {
        let mut space = Self {
            number: file_number.to_owned(),
            language: String::new(),
            lines: Vec::new(),
            prompts: Vec::new(),
        };
        let mut before = Vec::new();
        read_lines(text, |mark, rest, line| {
            if (mark == "##") != space.language.is_empty() {
                return Err("a space has one heading, in the first line".to_owned());
            }
            match mark {
                "##" => space.language = language(rest, file_number)?,
                "m" => space.push_line(rest)?,
                "c" if before.is_empty() => {
                    let turns = rest.split(" ## ").map(spoken);
                    before = turns.collect::<Result<_, _>>()?;
                }
                "p" => {
                    let before = std::mem::take(&mut before);
                    let prompt = prompt(rest, line, before, space.lines.len())?;
                    space.prompts.push(prompt);
                }
                "c" => return Err("turns stand before turns and not before a prompt".to_owned()),
                other => return Err(format!("`{other}` begins no line of a space")),
            }
            Ok(())
        })?;
        Ok(space)
    }

    fn push_line(&mut self, rest: &str) -> Result<(), String> {
        if !self.prompts.is_empty() {
            return Err("memory stands behind a prompt".to_owned());
        }
        if rest.contains('|') {
            return Err("the text has a `|`".to_owned());
        }
        let parts = rest.split_once(' ');
        let (day, said) = parts.ok_or("memory is a day, speaker, colon and text")?;
        let parsed = NaiveDate::parse_from_str(day, "%Y-%m-%d");
        let line = MemoryLine {
            day: parsed.map_err(|_| format!("`{day}` is no day such as 2025-01-14"))?,
            said: spoken(said)?,
        };
        if self.lines.last().is_some_and(|last| line.day < last.day) {
            return Err(format!("the day {day} is before that of the last line"));
        }
        self.lines.push(line);
        Ok(())
    }

    /// Too short a memory, or too few prompts; empty where there is no fault.
    pub fn problems(&self) -> Vec<String> {
        let (lines, prompts) = (self.lines.len(), self.prompts.len());
        let few_lines = (lines < MIN_LINES).then(|| format!("{lines} lines of memory"));
        let few_prompts = (prompts < MIN_PROMPTS).then(|| format!("{prompts} prompts"));
        few_lines.into_iter().chain(few_prompts).collect()
    }
}

fn language(heading: &str, file_number: &str) -> Result<String, String> {
    let [number, language] = fields(heading)[..] else {
        return Err("a heading is number | language".to_owned());
    };
    if number != file_number {
        return Err(format!("the number {number} is not that of the file"));
    }
    match language.len() == 2 && language.bytes().all(|it| it.is_ascii_lowercase()) {
        true => Ok(language.to_owned()),
        false => Err(format!("`{language}` is no language of two letters")),
    }
}

fn prompt(
    rest: &str,
    line: usize,
    before: Vec<SpokenText>,
    lines: usize,
) -> Result<LabelledPrompt, String> {
    let fields = fields(rest);
    let [kind, text, labels @ ..] = &fields[..] else {
        return Err("a prompt is kind | text | + lines | ~ lines".to_owned());
    };
    let mut prompt = LabelledPrompt {
        line,
        kind: named(kind, PromptKind::named, "a kind of prompt")?,
        text: (*text).to_owned(),
        before,
        needed: Vec::new(),
        helpful: Vec::new(),
    };
    for label in labels.iter().filter(|label| !label.is_empty()) {
        match label.split_at_checked(1) {
            Some(("+", places)) => prompt.needed = memory_places(places, lines)?,
            Some(("~", places)) => prompt.helpful = memory_places(places, lines)?,
            _ => return Err(format!("`{label}` begins with neither + nor ~")),
        }
    }
    if prompt.text.is_empty() {
        return Err("the text is empty".to_owned());
    }
    if prompt.kind.needs_memory() == prompt.needed.is_empty() {
        let kind = prompt.kind;
        return Err(match prompt.needed.len() {
            0 => format!("+: a prompt of kind {kind} names the lines that it needs"),
            _ => format!("+: a prompt of kind {kind} needs no line"),
        });
    }
    if let Some(twice) = prompt.helpful.iter().find(|it| prompt.needed.contains(it)) {
        return Err(format!("~: line {twice} is needed"));
    }
    Ok(prompt)
}

fn memory_places(list: &str, lines: usize) -> Result<Vec<usize>, String> {
    let places = list.split_whitespace().map(|word| {
        let place = number(word)?;
        let is_there = place < lines;
        is_there
            .then_some(place)
            .ok_or_else(|| format!("memory has no line {place}"))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = "\
## 07 | en
m 2025-01-14 Ilse: We're in the harbour flat in Emden: lovely.
m 2025-02-02 *Assistant: Noted!
p implicit | Book us a table | + 0 | ~ 1
c Ilse: I'm looking at flats ## *Assistant: Which area?
p explicit | the same as now | + 0 1
p none | ta
";

    #[test]
    fn a_space_is_read_with_its_labels() {
        let space = NeedSpace::read("07", SPACE).unwrap();
        assert_eq!((&*space.language, space.lines.len()), ("en", 2));
        assert_eq!(
            space.lines[0].said.text,
            "We're in the harbour flat in Emden: lovely."
        );
        assert!(space.lines[1].said.is_assistant);
        let [implicit, explicit, none] = &space.prompts[..] else {
            panic!("{:?}", space.prompts);
        };
        assert_eq!(
            (&implicit.needed[..], &implicit.helpful[..]),
            (&[0][..], &[1][..])
        );
        assert_eq!((explicit.line, explicit.before.len()), (6, 2));
        assert_eq!(explicit.before[1].text, "Which area?");
        assert_eq!(
            (none.kind, none.before.len(), none.needed.len()),
            (PromptKind::Unneeded, 0, 0)
        );
    }

    #[test]
    fn a_short_space_is_told() {
        let space = NeedSpace::read("07", SPACE).unwrap();
        assert_eq!(space.problems(), ["2 lines of memory", "3 prompts"]);
    }

    #[test]
    fn a_fault_names_its_line_and_the_field() {
        for (line, problem) in [
            ("## 07 | en", "a space has one heading, in the first line"),
            (
                "m 2025-02-30 Ilse: Hi",
                "`2025-02-30` is no day such as 2025-01-14",
            ),
            ("m 2025-02-02 Hi", "`Hi` is no speaker, colon and text"),
            ("m 2025-02-02 Ilse: a | b", "the text has a `|`"),
            (
                "m 2025-01-02 Ilse: Hi",
                "the day 2025-01-02 is before that of the last line",
            ),
            ("p near", "a prompt is kind | text | + lines | ~ lines"),
            ("p near |", "the text is empty"),
            ("p far | Hi", "`far` is not a kind of prompt"),
            (
                "p rule | Hi",
                "+: a prompt of kind rule names the lines that it needs",
            ),
            (
                "p near | Hi | + 0",
                "+: a prompt of kind near needs no line",
            ),
            ("p rule | Hi | + 2", "memory has no line 2"),
            ("p rule | Hi | + x", "`x` is no number"),
            ("p rule | Hi | + 0 | ~ 0", "~: line 0 is needed"),
            ("p rule | Hi | 0", "`0` begins with neither + nor ~"),
            ("q Hi", "`q` begins no line of a space"),
        ] {
            let memory: String = SPACE.split_inclusive('\n').take(3).collect();
            let error = NeedSpace::read("07", &format!("{memory}{line}")).unwrap_err();
            assert_eq!((error.line, &*error.problem), (4, problem));
        }
        for (number, line, problem) in [
            ("08", "## 07 | en", "the number 07 is not that of the file"),
            (
                "07",
                "## 07 | english",
                "`english` is no language of two letters",
            ),
            (
                "07",
                "p none | Hi",
                "a space has one heading, in the first line",
            ),
        ] {
            let error = NeedSpace::read(number, line).unwrap_err();
            assert_eq!((error.line, &*error.problem), (1, problem));
        }
        for (line, problem) in [
            ("m 2025-03-02 Ilse: Hi", "memory stands behind a prompt"),
            (
                "c Ilse: a\nc Ilse: b",
                "turns stand before turns and not before a prompt",
            ),
        ] {
            let error = NeedSpace::read("07", &format!("{SPACE}{line}")).unwrap_err();
            assert_eq!(error.problem, problem);
        }
    }
}
