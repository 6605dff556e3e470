//! Blocks of memory: within their budget, and read back as exactly the items in them, whatever these say.

use chrono::{DateTime, Utc};
use memfleet_assembly::{
    Block, Candidate, Enclosure, Granularity, Nonce, Options, Order, Place, Template, Tokenizer,
    Trust, Untrusted, assemble, parse, sanitise,
};

use crate::choices::Choices;

const NONCE: &str = "k3f9a1c7";
/// The most memories of a block: more say nothing new and take long.
const MEMORIES: usize = 24;
/// Noon of a day in 2023.
const NOON: i64 = 1_683_028_800;
const DAY: i64 = 86_400;

/// Options, a number each, and the text before the block; then memories with a separator between: three numbers, who speaks, `|`, and what
/// is said.
pub fn block(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let tokenizer = Tokenizer::named("bytes").expect("a tokenizer of this name is shipped");
    let options = options(&mut choices, &tokenizer);
    let Some(before) = choices.part().and_then(text) else {
        return;
    };
    let options = Options {
        place: Place::after(before),
        ..options
    };
    let memories: Vec<Candidate<'_>> = std::iter::from_fn(|| choices.part())
        .take(MEMORIES)
        .enumerate()
        .filter_map(|(at, bytes)| memory(at, bytes))
        .collect();
    let block = assemble(&memories, &options);
    holds(&block, &memories, &options);

    let reversed: Vec<Candidate<'_>> = memories.iter().rev().copied().collect();
    assert_eq!(assemble(&reversed, &options).text, block.text);
    // Any text is a block, or none: whatever stands there is read without a panic.
    let _ = parse(before, options.enclosure.nonce(), options.template);
}

fn options<'o>(choices: &mut Choices<'_>, tokenizer: &'o Tokenizer) -> Options<'o> {
    let nonce = Nonce::new(NONCE).expect("letters and digits");
    let budget = choices.number() * 16 + choices.number();
    Options {
        enclosure: choices.one(&[
            Enclosure::Plain,
            Enclosure::Delimited(nonce),
            Enclosure::Datamarked(nonce),
        ]),
        template: choices.one(&Template::shipped()),
        order: choices.one(&[
            Order::Rank,
            Order::Chronological,
            Order::BestLast,
            Order::Sandwich,
        ]),
        untrusted: choices.one(&[
            Untrusted::Include,
            Untrusted::DownRank,
            Untrusted::Segregate,
            Untrusted::Exclude,
        ]),
        cut_at_end: choices.flag(),
        as_of: choices.flag().then(|| day(9)),
        ..Options::new(budget, tokenizer)
    }
}

fn memory(at: usize, bytes: &[u8]) -> Option<Candidate<'_>> {
    let mut choices = Choices::new(bytes);
    let trust = choices.one(&[
        Trust::User,
        Trust::Assistant,
        Trust::Tool,
        Trust::Web,
        Trust::Unknown,
    ]);
    let granularity = choices.one(&[
        Granularity::Verbatim,
        Granularity::Fact,
        Granularity::Profile,
    ]);
    let session = choices.number() % 8;
    let (speaker, said) = text(choices.rest())?.split_once('|')?;
    Some(Candidate {
        session: session as u64,
        position: at as u64,
        speaker,
        text: said,
        event_time: (session > 0).then(|| day(session as i64)),
        score: -(at as f32),
        trust,
        granularity,
        ..Candidate::default()
    })
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn day(number: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(NOON + DAY * number, 0).expect("a day of our time")
}

fn holds(block: &Block, memories: &[Candidate<'_>], options: &Options<'_>) {
    assert!(block.tokens <= options.budget_tokens);
    assert!(block.added_tokens <= options.budget_tokens);
    assert_eq!(block.items.len() + block.left_out.len(), memories.len());
    if block.items.is_empty() {
        assert_eq!(block.text, "");
        return;
    }
    let nonce = options.enclosure.nonce();
    // A block without an enclosure is all of a text; one with it may stand anywhere.
    let around = nonce.map_or(block.text.clone(), |_| format!("{}\nafter", block.text));
    let read = parse(&around, nonce, options.template);
    let read = read.unwrap_or_else(|| panic!("no block: {}", block.text));
    assert_eq!(read.len(), block.items.len(), "{}", block.text);
    for (item, read) in block.items.iter().zip(&read) {
        let memory = &memories[item.candidate];
        let shown = item.extent.of(memory.text);
        assert_eq!(read.text, sanitise::text(&shown, nonce), "{}", block.text);
        let speaker = sanitise::speaker(memory.speaker, nonce);
        let nobody = speaker.is_empty() && read.labels.is_empty();
        assert_eq!(read.speaker, if nobody { "?" } else { &speaker });
        assert_eq!(read.key, options.template.shows_keys.then_some(item.key));
        let date = memory.event_time.map(|time| time.date_naive().to_string());
        assert_eq!(read.date, date, "{}", block.text);
        let labelled = |word: &str| read.labels.iter().any(|label| label == word);
        assert_eq!(labelled("tool"), memory.trust == Trust::Tool);
        assert_eq!(labelled("web"), memory.trust == Trust::Web);
        assert_eq!(labelled("fact"), memory.granularity == Granularity::Fact);
        assert_eq!(read.mark, None);
    }
}
