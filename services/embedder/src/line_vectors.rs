//! Vectors of remembered lines and of prompts that were read before.

use std::sync::Arc;

use memfleet_ports::turn_reader::TurnText;
use memfleet_understanding::PromptVector;
use quick_cache::sync::Cache;

/// Lines whose vectors are kept: 4 MB of vectors of 384 components.
const LINES: usize = 8_192;

/// Prompts whose vectors are kept.
const PROMPTS: usize = 128;

/// Lines that are read between two looks at whether the caller still waits.
const LINES_AT_A_TIME: usize = 64;

/// Beginning of the hash of a line's role and text, or of a prompt and the turns before it.
type LineKey = [u8; 16];

/// Vector of a line: components as signed bytes, and the size of one step of them.
#[derive(Debug)]
struct PackedVector {
    step: f32,
    components: Box<[i8]>,
}

impl PackedVector {
    fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let step = largest.max(f32::MIN_POSITIVE) / 127.0;
        let components = vector.iter().map(|x| (x / step).round() as i8);
        Self {
            step,
            components: components.collect(),
        }
    }

    fn unpacked(&self) -> Vec<f32> {
        let components = self.components.iter();
        components.map(|&x| f32::from(x) * self.step).collect()
    }
}

/// Vectors of the lines that were asked for lately.
pub(crate) struct LineVectors {
    kept: Cache<LineKey, Arc<PackedVector>>,
}

/// Lines with their vectors, and the number of those that were known.
pub(crate) struct FoundVectors {
    vectors: Vec<Arc<PackedVector>>,
    pub(crate) known: usize,
}

impl FoundVectors {
    /// The vectors, in the order of the lines.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Vec<f32>> {
        self.vectors.iter().map(|vector| vector.unpacked())
    }
}

impl LineVectors {
    pub(crate) fn new() -> Self {
        Self {
            kept: Cache::new(LINES),
        }
    }

    /// Vectors of lines. Those that are not known are read by `read` in parts, which is given texts
    /// and whether an assistant said them; nothing where it gives nothing, as the caller left.
    /// Parts that were read before that are kept.
    pub(crate) fn of<E>(
        &self,
        lines: &[TurnText],
        mut read: impl FnMut(&[(&str, bool)]) -> Result<Option<Vec<Vec<f32>>>, E>,
    ) -> Result<Option<FoundVectors>, E> {
        let keys: Vec<LineKey> = lines.iter().map(line_key).collect();
        let mut vectors: Vec<_> = keys.iter().map(|key| self.kept.get(key)).collect();
        let missing: Vec<usize> = (0..lines.len())
            .filter(|&place| vectors[place].is_none())
            .collect();
        for part in missing.chunks(LINES_AT_A_TIME) {
            let unread = part.iter().map(|&place| &lines[place]);
            let unread: Vec<_> = unread
                .map(|line| (&*line.text, line.is_assistant))
                .collect();
            let Some(answers) = read(&unread)? else {
                return Ok(None);
            };
            for (&place, answer) in part.iter().zip(&answers) {
                let vector = Arc::new(PackedVector::of(answer));
                self.kept.insert(keys[place], vector.clone());
                vectors[place] = Some(vector);
            }
        }
        let found: Option<Vec<_>> = vectors.into_iter().collect();
        Ok(found.map(|vectors| FoundVectors {
            known: vectors.len() - missing.len(),
            vectors,
        }))
    }
}

/// Readings of the prompts that were asked for lately, since the lines of one prompt come in several
/// questions.
pub(crate) struct PromptVectors {
    kept: Cache<LineKey, Arc<PromptVector>>,
}

impl PromptVectors {
    pub(crate) fn new() -> Self {
        Self {
            kept: Cache::new(PROMPTS),
        }
    }

    /// Reading of a prompt behind the turns before it, which `read` gives unless it is known.
    pub(crate) fn of<E>(
        &self,
        prompt: &str,
        before: &str,
        read: impl FnOnce() -> Result<PromptVector, E>,
    ) -> Result<Arc<PromptVector>, E> {
        let length = prompt.len().to_le_bytes();
        let key = key(&[&length, prompt.as_bytes(), before.as_bytes()]);
        self.kept.get_or_insert_with(&key, || read().map(Arc::new))
    }
}

fn line_key(line: &TurnText) -> LineKey {
    key(&[&[u8::from(line.is_assistant)], line.text.as_bytes()])
}

fn key(parts: &[&[u8]]) -> LineKey {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut key = LineKey::default();
    hasher.finalize_xof().fill(&mut key);
    key
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use memfleet_domain::tense::{PromptTense, TenseScores};

    use super::*;

    fn line(text: &str, is_assistant: bool) -> TurnText {
        TurnText {
            speaker: "ada".to_owned(),
            is_assistant,
            text: text.to_owned(),
        }
    }

    /// A vector that tells lines apart.
    fn vector((text, is_assistant): &(&str, bool)) -> Vec<f32> {
        let first = text.len() as f32 / 10.0;
        vec![first, f32::from(u8::from(*is_assistant)), -0.4]
    }

    /// First components of the vectors that were found, and the number of lines that were read.
    fn asked(vectors: &LineVectors, lines: &[TurnText]) -> (Vec<f32>, usize) {
        let mut count = 0;
        let found = vectors.of(lines, |unread| {
            count += unread.len();
            Ok::<_, Infallible>(Some(unread.iter().map(vector).collect()))
        });
        let found = found.unwrap().unwrap();
        assert_eq!(found.known, lines.len() - count);
        (found.iter().map(|it| it[0]).collect(), count)
    }

    #[test]
    fn known_lines_are_not_read_again_and_all_are_in_their_order() {
        let vectors = LineVectors::new();
        let (first, count) = asked(&vectors, &[line("abc", false), line("a", false)]);
        assert_eq!((first.len(), count), (2, 2));
        let lines = ["a", "ab", "abc"].map(|text| line(text, false));
        let (found, count) = asked(&vectors, &lines);
        assert_eq!(count, 1);
        for (found, said) in found.iter().zip([0.1, 0.2, 0.3]) {
            assert!((found - said).abs() < 0.01, "{found} for {said}");
        }
        assert_eq!(asked(&vectors, &lines), (found, 0));
    }

    #[test]
    fn a_prompt_is_read_once_behind_the_same_turns() {
        let vectors = PromptVectors::new();
        let mut count = 0;
        let mut asked = |prompt: &str, before: &str| {
            let read = || {
                count += 1;
                Ok::<_, Infallible>(PromptVector {
                    values: vector(&(prompt, false)),
                    offset: 0.0,
                    tense: TenseScores::certain(PromptTense::Now),
                })
            };
            let vector = vectors.of(prompt, before, read).unwrap();
            (vector.values.clone(), count)
        };
        let first = asked("ab", "c");
        assert_eq!(asked("ab", "c"), first);
        assert_eq!(asked("ab", "").1, 2);
        assert_eq!(asked("a", "bc").1, 3);
    }

    #[test]
    fn the_role_tells_lines_apart_and_the_name_does_not() {
        let vectors = LineVectors::new();
        assert_eq!(asked(&vectors, &[line("so", false)]).1, 1);
        assert_eq!(asked(&vectors, &[line("so", true)]).1, 1);
        let bob = TurnText {
            speaker: "bob".to_owned(),
            ..line("so", true)
        };
        assert_eq!(asked(&vectors, &[bob]).1, 0);
    }

    #[test]
    fn parts_read_before_the_caller_left_are_kept() {
        let vectors = LineVectors::new();
        let lines: Vec<_> = (0..2 * LINES_AT_A_TIME)
            .map(|number| line(&number.to_string(), false))
            .collect();
        let mut parts = 0;
        let found = vectors.of(&lines, |unread| {
            parts += 1;
            let answers = unread.iter().map(vector).collect();
            Ok::<_, Infallible>((parts == 1).then_some(answers))
        });
        assert!(found.unwrap().is_none());
        assert_eq!(asked(&vectors, &lines).1, LINES_AT_A_TIME);
    }

    #[test]
    fn the_number_of_vectors_is_bounded() {
        let vectors = LineVectors::new();
        let lines: Vec<_> = (0..2 * LINES)
            .map(|number| line(&number.to_string(), false))
            .collect();
        asked(&vectors, &lines);
        assert!(vectors.kept.len() <= LINES);
    }

    #[test]
    fn a_packed_vector_is_near_the_vector() {
        let values: Vec<f32> = (0..384).map(|x| (x as f32).sin() / 14.0).collect();
        let packed = PackedVector::of(&values);
        for (found, expected) in packed.unpacked().into_iter().zip(values) {
            assert!((found - expected).abs() < 0.5 / 14.0 / 126.0);
        }
        let nothing = [0.0; 3];
        assert_eq!(PackedVector::of(&nothing).unpacked(), nothing);
    }
}
