//! The corpus as a whole: writers apart by part, and measures of how alike they write.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::checking::folded;
use super::folders::{self, CorpusError, WriterFolder};
use super::{
    History, JudgedLine, JudgedTalk, LabelledScenario, MeetingLabels, NamedTurn, NeedSpace,
    PairGroup, ScenarioBounds, ScenarioTurn, contrast, read,
};

/// Characters of a run of text that two writers should not share.
const RUN: usize = 30;

/// Words of a scenario's opening.
const OPENING: usize = 3;

/// Characters of a prompt that may come again, such as a greeting.
const COMMON_PROMPT: usize = 12;

/// Largest share of runs of 30 characters that a writer may share with others.
pub const MAX_SHARED_RUNS: f64 = 0.01;

/// Largest share of scenarios that may begin as another one does.
pub const MAX_REPEATED_OPENINGS: f64 = 0.05;

/// All sets of the corpus, each by part and writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderstandingCorpus {
    /// Scenarios.
    pub scenarios: Vec<WriterFolder<LabelledScenario>>,
    /// Contrast sets, three scenarios each.
    pub contrast: Vec<WriterFolder<LabelledScenario>>,
    /// Pairs of statements, by group.
    pub pairs: Vec<WriterFolder<PairGroup>>,
    /// Turns whose names are marked.
    pub names: Vec<WriterFolder<NamedTurn>>,
    /// Sentences of scenarios, judged as lines of profiles.
    pub lines: Vec<WriterFolder<JudgedLine>>,
    /// Long talks whose sentences are judged the same way.
    pub talks: Vec<WriterFolder<JudgedTalk>>,
    /// Long conversations with all their changes.
    pub histories: Vec<WriterFolder<History>>,
    /// Prompts for need, by space.
    pub needs: Vec<WriterFolder<NeedSpace>>,
    /// Labels of real meetings, by piece.
    pub meetings: Vec<WriterFolder<MeetingLabels>>,
}

impl UnderstandingCorpus {
    /// Loads `FOLDER/PART/WRITER/*.txt` and, of the other sets, `FOLDER/SET/PART/WRITER/*.txt`.
    pub fn load(folder: &Path) -> Result<Self, CorpusError> {
        Ok(Self {
            scenarios: folders::load(folder, |_, text| read(text))?,
            contrast: folders::load(&folder.join("contrast"), |_, text| read(text))?,
            pairs: folders::load(&folder.join("pairs"), |_, text| PairGroup::read(text))?,
            names: folders::load(&folder.join("names"), |_, text| NamedTurn::read(text))?,
            lines: folders::load(&folder.join("lines"), |_, text| JudgedLine::read(text))?,
            talks: folders::load(&folder.join("talks"), |_, text| JudgedTalk::read(text))?,
            histories: folders::load(&folder.join("histories"), |_, text| History::read(text))?,
            needs: folders::load(&folder.join("needs"), |number, text| {
                Ok(vec![NeedSpace::read(number, text)?])
            })?,
            meetings: folders::load(&folder.join("meetings"), |number, text| {
                Ok(vec![MeetingLabels::read(number, text)?])
            })?,
        })
    }

    /// Labels that contradict their text, broken triples, writers and meetings in two parts,
    /// repeated prompts and numbers; empty where there are none.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.writers_in_two_parts();
        problems.extend(scenario_problems(
            &self.scenarios,
            &ScenarioBounds::SCENARIO,
        ));
        problems.extend(scenario_problems(&self.contrast, &ScenarioBounds::CONTRAST));
        for WriterFolder { writer, items, .. } in &self.contrast {
            let triples = contrast::problems(items).into_iter();
            problems.extend(triples.map(|problem| format!("{writer} {problem}")));
        }
        problems.extend(self.group_problems());
        problems.extend(self.line_problems());
        problems.extend(self.talk_problems());
        problems.extend(self.history_problems());
        problems.extend(self.space_problems());
        problems.extend(self.meeting_problems());
        problems
    }

    fn writers_in_two_parts(&self) -> Vec<String> {
        let mut parts: HashMap<&str, &str> = HashMap::new();
        let writers = [
            writers(&self.scenarios),
            writers(&self.contrast),
            writers(&self.pairs),
            writers(&self.names),
            writers(&self.lines),
            writers(&self.talks),
            writers(&self.histories),
            writers(&self.needs),
            writers(&self.meetings),
        ];
        let twice = writers.into_iter().flatten().filter_map(|(writer, part)| {
            let other = parts.insert(writer, part)?;
            Some(format!("{writer} wrote for {other} and {part}"))
        });
        twice.collect()
    }

    fn talk_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut numbers = HashSet::new();
        for (writer, talk) in items(&self.talks) {
            let number = &talk.number;
            if !numbers.insert((writer, number)) {
                problems.push(format!("{writer} {number}: the number is taken"));
            }
            if talk.turns.is_empty() {
                problems.push(format!("{writer} {number}: no turns"));
            }
            for (place, turn) in talk.turns.iter().enumerate() {
                if turn.said.is_assistant && !turn.sentences.is_empty() {
                    problems.push(format!(
                        "{writer} {number}: turn {place} of an assistant is judged"
                    ));
                }
                if turn.said.text.contains(']') {
                    problems.push(format!(
                        "{writer} {number}: turn {place} has a `]` without a mark"
                    ));
                }
            }
        }
        problems
    }

    fn history_problems(&self) -> Vec<String> {
        numbered_problems(
            items(&self.histories).map(|(writer, it)| (writer, &*it.number, it.problems())),
        )
    }

    fn group_problems(&self) -> Vec<String> {
        numbered_problems(
            items(&self.pairs).map(|(writer, it)| (writer, &*it.number, it.problems())),
        )
    }

    /// Judged lines that no scenario of their part has.
    fn line_problems(&self) -> Vec<String> {
        let mut scenarios = HashMap::new();
        for folder in &self.scenarios {
            for scenario in &folder.items {
                let key = (
                    folder.part.as_str(),
                    folder.writer.as_str(),
                    scenario.number.as_str(),
                );
                scenarios.insert(key, scenario);
            }
        }
        let mut problems = Vec::new();
        for folder in &self.lines {
            for line in &folder.items {
                let key = (
                    folder.part.as_str(),
                    line.writer.as_str(),
                    line.scenario.as_str(),
                );
                let problem = line.problem(scenarios.get(&key).copied());
                problems.extend(problem.map(|it| format!("{}: {it}", folder.writer)));
            }
        }
        problems
    }

    fn space_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut places: HashMap<String, String> = HashMap::new();
        for (writer, space) in items(&self.needs) {
            let file = format!("{writer}/{}.txt", space.number);
            let own = space.problems().into_iter();
            problems.extend(own.map(|problem| format!("{file}: {problem}")));
            for prompt in &space.prompts {
                let text = folded(&prompt.text);
                let place = format!("{file}: line {}", prompt.line);
                if text.chars().count() <= COMMON_PROMPT {
                    continue;
                }
                if let Some(first) = places.insert(text, place.clone()) {
                    problems.push(format!("{place}: the prompt is that of {first}"));
                }
            }
        }
        problems
    }

    fn meeting_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut parts: HashMap<&str, &str> = HashMap::new();
        let mut turns = HashSet::new();
        for WriterFolder {
            part,
            writer,
            items,
        } in &self.meetings
        {
            for labels in items {
                let file = format!("{writer}/{}.txt", labels.number);
                let meeting = labels.meeting.as_str();
                let own = labels.problems().into_iter();
                problems.extend(own.map(|problem| format!("{file}: {problem}")));
                if parts
                    .insert(meeting, part)
                    .is_some_and(|other| other != part)
                {
                    problems.push(format!("{file}: {meeting} is in another part, too"));
                }
                let places = labels.turns.iter().map(|turn| turn.place);
                let twice = places.filter(|place| !turns.insert((meeting, *place)));
                problems.extend(twice.map(|place| format!("{file}: turn {place} comes again")));
            }
        }
        problems
    }

    /// By writer, the share of all runs of 30 characters that another writer has, too. Meetings
    /// have no text here.
    pub fn shared_runs(&self) -> BTreeMap<&str, f64> {
        let writers: Vec<(&str, HashSet<u64>)> = self.runs().into_iter().collect();
        let mut writers_of: HashMap<u64, usize> = HashMap::new();
        for run in writers.iter().flat_map(|(_, runs)| runs) {
            *writers_of.entry(*run).or_default() += 1;
        }
        let share = |runs: &HashSet<u64>| {
            let shared = runs.iter().filter(|run| writers_of[run] > 1);
            shared.count() as f64 / runs.len().max(1) as f64
        };
        let writers = writers.iter();
        writers
            .map(|(writer, runs)| (*writer, share(runs)))
            .collect()
    }

    /// By writer, hashes of all runs of text.
    fn runs(&self) -> BTreeMap<&str, HashSet<u64>> {
        let mut runs: BTreeMap<&str, HashSet<u64>> = BTreeMap::new();
        for (writer, scenario) in items(&self.scenarios).chain(items(&self.contrast)) {
            let runs = runs.entry(writer).or_default();
            let texts = scenario.turns.iter().map(|turn| &turn.said.text);
            texts.for_each(|text| add_runs(text, runs));
        }
        for (writer, group) in items(&self.pairs) {
            let runs = runs.entry(writer).or_default();
            let texts = group.turns().map(|turn| &turn.said.text);
            texts.for_each(|text| add_runs(text, runs));
        }
        for (writer, turn) in items(&self.names) {
            add_runs(&turn.said.text, runs.entry(writer).or_default());
        }
        for (writer, talk) in items(&self.talks) {
            let runs = runs.entry(writer).or_default();
            let texts = talk.turns.iter().map(|turn| &turn.said.text);
            texts.for_each(|text| add_runs(text, runs));
        }
        for (writer, history) in items(&self.histories) {
            let runs = runs.entry(writer).or_default();
            let texts = history.turns.iter().map(|turn| &turn.said.text);
            texts.for_each(|text| add_runs(text, runs));
        }
        for (writer, space) in items(&self.needs) {
            let runs = runs.entry(writer).or_default();
            let lines = space.lines.iter().map(|line| &line.said.text);
            lines.for_each(|text| add_runs(text, runs));
            for prompt in &space.prompts {
                let before = prompt.before.iter().map(|said| &said.text);
                before
                    .chain([&prompt.text])
                    .for_each(|text| add_runs(text, runs));
            }
        }
        runs
    }

    /// The share of scenarios whose first three words begin another one, too. An edit of a contrast
    /// set begins as its base does and does not count.
    pub fn repeated_openings(&self) -> f64 {
        let opening = |first: &ScenarioTurn| -> Vec<String> {
            let first = folded(&first.said.text);
            first.split(' ').take(OPENING).map(str::to_owned).collect()
        };
        let scenarios = items(&self.scenarios).chain(items(&self.contrast));
        let bases = scenarios.filter(|(_, scenario)| !scenario.is_edit());
        let firsts = bases.filter_map(|(_, scenario)| scenario.turns.first());
        let openings: Vec<_> = firsts.map(opening).collect();
        let mut times: HashMap<&[String], usize> = HashMap::new();
        for opening in &openings {
            *times.entry(opening).or_default() += 1;
        }
        let repeated = openings.iter().filter(|it| times[it.as_slice()] > 1);
        repeated.count() as f64 / openings.len().max(1) as f64
    }
}

/// Writers of a set and their parts.
fn writers<T>(set: &[WriterFolder<T>]) -> Vec<(&str, &str)> {
    let writers = set.iter();
    writers
        .map(|folder| (folder.writer.as_str(), folder.part.as_str()))
        .collect()
}

/// Items of a set and their writers.
fn items<T>(set: &[WriterFolder<T>]) -> impl Iterator<Item = (&str, &T)> {
    set.iter().flat_map(|folder| {
        let items = folder.items.iter();
        items.map(|item| (folder.writer.as_str(), item))
    })
}

fn scenario_problems(
    set: &[WriterFolder<LabelledScenario>],
    bounds: &ScenarioBounds,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut numbers = HashSet::new();
    for (writer, scenario) in items(set) {
        let number = &scenario.number;
        if !numbers.insert((writer, number)) {
            problems.push(format!("{writer} {number}: the number is taken"));
        }
        let own = scenario.problems(bounds).into_iter();
        problems.extend(own.map(|problem| format!("{writer} {number}: {problem}")));
    }
    problems
}

/// Adds the hashes of all runs of a text.
fn add_runs(text: &str, runs: &mut HashSet<u64>) {
    let characters: Vec<char> = folded(text).chars().collect();
    for run in characters.windows(RUN) {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        runs.insert(hasher.finish());
    }
}

/// Problems of items with their writers and numbers, and numbers that a writer has twice.
fn numbered_problems<'c>(
    items: impl Iterator<Item = (&'c str, &'c str, Vec<String>)>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut numbers = HashSet::new();
    for (writer, number, own) in items {
        if !numbers.insert((writer, number)) {
            problems.push(format!("{writer} {number}: the number is taken"));
        }
        let own = own.into_iter();
        problems.extend(own.map(|problem| format!("{writer} {number}: {problem}")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "## a.json | commit 0123456789012345678901234567890123456789 | 0-9\n";

    fn folder<T>(part: &str, writer: &str, items: Vec<T>) -> WriterFolder<T> {
        WriterFolder {
            part: part.to_owned(),
            writer: writer.to_owned(),
            items,
        }
    }

    fn empty() -> UnderstandingCorpus {
        UnderstandingCorpus {
            scenarios: Vec::new(),
            contrast: Vec::new(),
            pairs: Vec::new(),
            names: Vec::new(),
            lines: Vec::new(),
            talks: Vec::new(),
            histories: Vec::new(),
            needs: Vec::new(),
            meetings: Vec::new(),
        }
    }

    fn space(number: &str, prompts: &str) -> NeedSpace {
        let text = format!("## {number} | en\n{prompts}");
        NeedSpace::read(number, &text).unwrap()
    }

    fn scenarios(text: &str) -> Vec<LabelledScenario> {
        read(text).unwrap()
    }

    #[test]
    fn talks_that_contradict_themselves_are_told() {
        let talks = "## 01 | en\nJon: hey] you\n*Assistant: [s--:hello]\n## 01 | en\n";
        let mut corpus = empty();
        let talks = JudgedTalk::read(talks).unwrap();
        corpus.talks = vec![folder("train", "t1", talks)];
        let expected = [
            "t1 01: turn 0 has a `]` without a mark",
            "t1 01: turn 1 of an assistant is judged",
            "t1 01: the number is taken",
            "t1 01: no turns",
        ];
        assert_eq!(corpus.problems(), expected);
    }

    #[test]
    fn a_writer_of_two_sets_is_told() {
        let mut corpus = empty();
        corpus.scenarios = vec![folder("train", "w01", Vec::new())];
        corpus.needs = vec![folder("test", "w01", Vec::new())];
        assert_eq!(corpus.problems(), ["w01 wrote for train and test"]);
    }

    #[test]
    fn a_prompt_that_comes_again_is_told_and_thanks_are_not() {
        let mut corpus = empty();
        let first = space("01", "p none | ta\np none | write a haiku about rain\n");
        let second = space("02", "p none | ta\np none | Write a haiku  about rain\n");
        corpus.needs = vec![
            folder("train", "n1", vec![first]),
            folder("test", "n4", vec![second]),
        ];
        let problems = corpus.problems();
        let repeated = "n4/02.txt: line 3: the prompt is that of n1/01.txt: line 3";
        assert_eq!(
            problems
                .iter()
                .filter(|it| it.contains("prompt is"))
                .collect::<Vec<_>>(),
            [repeated]
        );
        assert!(problems.contains(&"n1/01.txt: 2 prompts".to_owned()));
    }

    #[test]
    fn a_meeting_in_two_parts_and_a_turn_that_comes_again_are_told() {
        let labels = |number: &str| {
            let text = format!("{HEADING}@ 4 5 00000000\n- 0-5 | small | us\n");
            MeetingLabels::read(number, &text).unwrap()
        };
        let mut corpus = empty();
        corpus.meetings = vec![
            folder("train", "h1", vec![labels("01")]),
            folder("test", "h2", vec![labels("02")]),
        ];
        assert_eq!(
            corpus.problems(),
            [
                "h2/02.txt: a.json is in another part, too",
                "h2/02.txt: turn 4 comes again"
            ]
        );
    }

    #[test]
    fn a_run_that_writers_of_two_sets_share_is_counted() {
        let run = "a run of thirty characters 012";
        let mut corpus = empty();
        let scenario = format!("## 001 | en | expiry\n@ 2025-01-14T18:40 Ilse: {run}\n");
        corpus.contrast = vec![folder("train", "c1", scenarios(&scenario))];
        corpus.needs = vec![
            folder(
                "test",
                "n4",
                vec![space("01", &format!("p none | {run}\n"))],
            ),
            folder(
                "test",
                "n5",
                vec![space("01", "p none | another text of thirty characters\n")],
            ),
        ];
        let shared = corpus.shared_runs();
        assert_eq!(
            shared.into_iter().collect::<Vec<_>>(),
            [("c1", 1.0), ("n4", 1.0), ("n5", 0.0)]
        );
    }

    #[test]
    fn edits_of_a_contrast_set_repeat_no_opening() {
        let text = |number: &str| {
            format!("## {number} | en | expiry\n@ 2025-01-14T18:40 Ilse: We're in the flat\n")
        };
        let mut corpus = empty();
        let triple = [text("001"), text("001a"), text("001b")].concat();
        corpus.contrast = vec![folder("train", "c1", scenarios(&triple))];
        assert_eq!(corpus.repeated_openings(), 0.0);
        corpus.scenarios = vec![folder("train", "w01", scenarios(&text("001")))];
        assert_eq!(corpus.repeated_openings(), 1.0);
    }
}
