//! Texts of our own that spread over all that the model has words for.

use tokenizers::Tokenizer;

/// Words a text. Short carriers and few words, so that most of what is measured are the words, not the carriers.
const PAIR: usize = 2;

/// Frames for two words.
const CARRIERS: [&str; 4] = [
    "{1} {2}",
    "Yesterday we talked about {1} and {2}.",
    "What do you think of {1}, or {2}?",
    "{1} is next to {2}.",
];

/// A number without a factor in common with any vocabulary, so that steps of it visit every word in a mixed order.
const STRIDE: usize = 7_919;

/// Words of at least three letters.
const SHORTEST: usize = 3;

/// All texts, always the same ones: every whole word of the vocabulary once.
pub fn texts(tokenizer: &Tokenizer) -> Vec<String> {
    let words: Vec<String> = (0..tokenizer.get_vocab_size(false) as u32)
        .filter_map(|id| tokenizer.id_to_token(id))
        .filter(|word| word.len() >= SHORTEST && word.chars().all(|c| c.is_ascii_lowercase()))
        .collect();
    let mixed: Vec<&String> = (0..words.len())
        .map(|at| &words[at * STRIDE % words.len()])
        .collect();
    let pairs = mixed.chunks_exact(PAIR).zip(CARRIERS.iter().cycle());
    pairs
        .map(|(pair, carrier)| carrier.replace("{1}", pair[0]).replace("{2}", pair[1]))
        .collect()
}
