//! What a run is called and found by: the head of its opening turn, a title, and its most central sentences.

use memfleet_language::sentences;

use super::drift::cosine;

/// Characters of a head.
pub(super) const HEAD: usize = 320;
/// Characters of a title.
pub(super) const TITLE: usize = 80;
/// Sentences that are more alike than this say the same.
const SAME: f32 = 0.85;
/// What encloses code.
const FENCE: &str = "```";

/// The first sentences of a text without its code, some 320 characters. It stands for the run that the text opens.
pub fn head(text: &str) -> String {
    // Every second part lies between fences; where nothing else is left, the code is what was said.
    let prose: Vec<&str> = text.split(FENCE).step_by(2).collect();
    let prose = one_line(&prose.join(" "));
    let prose = if prose.is_empty() {
        one_line(text)
    } else {
        prose
    };
    let fits = |range: &std::ops::Range<usize>| prose[..range.end].chars().count() <= HEAD;
    let end = sentences(&prose).into_iter().take_while(fits).last();
    match end {
        Some(range) => prose[..range.end].trim_end().to_owned(),
        None => cut(&prose, HEAD),
    }
}

/// A headline: the first sentence of a head, some 80 characters.
pub fn title(head: &str) -> String {
    let first = sentences(head).into_iter().next().unwrap_or(0..0);
    cut(head[first].trim(), TITLE)
}

/// The places of up to `most` sentences, in order, that stand for all: each close to the mean of all vectors, none like another.
pub fn central(vectors: &[&[i8]], most: usize) -> Vec<usize> {
    let vectors: Vec<Vec<f32>> = vectors
        .iter()
        .map(|vector| vector.iter().map(|&x| f32::from(x)).collect())
        .collect();
    let mut mean = vec![0.0; vectors.iter().map(Vec::len).max().unwrap_or(0)];
    for vector in &vectors {
        mean.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
    }
    let centrality = |at: usize| cosine(&vectors[at], &mean).unwrap_or(-1.0);
    let mut order: Vec<usize> = (0..vectors.len()).collect();
    order.sort_by(|&a, &b| centrality(b).total_cmp(&centrality(a)).then(a.cmp(&b)));
    let mut chosen: Vec<usize> = Vec::new();
    for at in order {
        let is_like = |&other: &usize| {
            cosine(&vectors[at], &vectors[other]).is_some_and(|cosine| cosine > SAME)
        };
        if chosen.len() < most && !chosen.iter().any(is_like) {
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    chosen
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `most` characters, cut between words where there are any.
fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let end = text[..end].rfind(' ').unwrap_or(end);
    format!("{}…", text[..end].trim_end())
}
