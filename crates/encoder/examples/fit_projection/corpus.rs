//! Texts of our own that spread over what people talk about.

use tokenizers::Tokenizer;

/// Every so many pieces of the vocabulary one is used.
const VOCABULARY_STEP: usize = 5;
/// Sentences made from every template.
const PER_TEMPLATE: usize = 60;

/// Frames for a piece of the vocabulary.
const CARRIERS: [&str; 8] = [
    "Yesterday we talked about {} for almost an hour.",
    "What do you think of {} in general?",
    "The note only said {}, nothing else.",
    "{} is the first thing I noticed there.",
    "Mia: can you look up {} for me before Monday?",
    "They compared it with {} and could not agree.",
    "There was {} on the table, next to the keys.",
    "In the second chapter the author returns to {}.",
];

/// Frames with places for a person, a thing, an activity, a place and a time.
const TEMPLATES: [&str; 14] = [
    "{person}: I started {activity} {time}, and honestly it changed my week.",
    "Did {person} ever tell you about {thing} from {place}?",
    "{person} moved to {place} {time} because of {thing}.",
    "Remember that {person} prefers {thing} and does not like {activity}.",
    "We could not find {thing} in {place}, so we went {activity} instead.",
    "How long has {person} been {activity} with the group in {place}?",
    "The report on {thing} is due {time}; {person} writes the summary.",
    "{person}: haha no way, {thing} again? That is so {place}!",
    "My doctor asked whether {activity} helps, and I said it depends on {thing}.",
    "The price of {thing} rose by 12 percent {time}, mostly in {place}.",
    "To reproduce the error, open {thing}, then call parse() twice; it fails {time}.",
    "{person} and her brother argued about {thing} while {activity} near {place}.",
    "I am proud of {person}: after years of {activity} she won a prize {time}.",
    "Thanks for the photo! Is that {thing} behind you, or just {place} in the rain?",
];

const PERSONS: [&str; 16] = [
    "Amara",
    "Jonas",
    "Wei",
    "Sofia",
    "Tariq",
    "Ingrid",
    "Mateo",
    "Priya",
    "Olek",
    "Naomi",
    "Luc",
    "Hana",
    "Grandpa",
    "the new manager",
    "my neighbour",
    "our teacher",
];

const THINGS: [&str; 32] = [
    "a second-hand piano",
    "the quarterly budget",
    "her chemistry exam",
    "the guide dog",
    "an old film camera",
    "tomato seedlings",
    "a custody hearing",
    "the solar panels",
    "his knee operation",
    "a mystery novel",
    "the database migration",
    "sourdough bread",
    "a mountain bike",
    "the charity run",
    "an insurance claim",
    "a watercolour of the harbour",
    "the jazz quartet",
    "our wedding anniversary",
    "the vaccination card",
    "a broken dishwasher",
    "the football final",
    "an adoption agency",
    "the grant proposal",
    "a telescope",
    "the config file",
    "handmade pottery",
    "a rescue kitten",
    "the visa application",
    "an electric car",
    "the science museum",
    "green curry",
    "a memory leak",
];

const ACTIVITIES: [&str; 24] = [
    "swimming",
    "learning Portuguese",
    "volunteering",
    "painting",
    "coding at night",
    "hiking",
    "baking",
    "meditating",
    "saving money",
    "playing chess",
    "gardening",
    "reading to the children",
    "climbing",
    "repairing furniture",
    "writing poems",
    "dancing salsa",
    "studying law",
    "travelling by train",
    "camping",
    "singing in a choir",
    "bird watching",
    "fostering dogs",
    "training for a marathon",
    "debugging",
];

const PLACES: [&str; 20] = [
    "Lisbon",
    "the library",
    "northern Norway",
    "a small clinic",
    "Nairobi",
    "the old factory",
    "Kyoto",
    "the community centre",
    "Montana",
    "the hospital",
    "Buenos Aires",
    "the beach",
    "a data centre",
    "Warsaw",
    "the national park",
    "the kitchen",
    "Hanoi",
    "the town hall",
    "the school yard",
    "Marrakesh",
];

const TIMES: [&str; 16] = [
    "last weekend",
    "in the summer of 2019",
    "on 3 May",
    "two years ago",
    "tomorrow morning",
    "every Thursday",
    "before the holidays",
    "at half past six",
    "next month",
    "since childhood",
    "in late autumn",
    "the day after",
    "around Christmas",
    "this afternoon",
    "in the first quarter",
    "twice a week",
];

/// All texts, always the same ones.
pub fn texts(tokenizer: &Tokenizer) -> Vec<String> {
    let words =
        (0..tokenizer.get_vocab_size(false) as u32).filter_map(|id| tokenizer.id_to_token(id));
    let words = words
        .filter(|word| word.chars().all(char::is_alphanumeric))
        .step_by(VOCABULARY_STEP);
    let carried = words
        .enumerate()
        .map(|(at, word)| CARRIERS[at % CARRIERS.len()].replace("{}", &word));
    carried.chain(made()).collect()
}

/// Sentences from the templates. Strides that share no factor with the lists' lengths mix all parts.
fn made() -> impl Iterator<Item = String> {
    let numbers = 0..TEMPLATES.len() * PER_TEMPLATE;
    numbers.map(|number| {
        TEMPLATES[number % TEMPLATES.len()]
            .replace("{person}", PERSONS[number * 5 % PERSONS.len()])
            .replace("{thing}", THINGS[number * 11 % THINGS.len()])
            .replace("{activity}", ACTIVITIES[number * 7 % ACTIVITIES.len()])
            .replace("{place}", PLACES[number * 3 % PLACES.len()])
            .replace("{time}", TIMES[number * 9 % TIMES.len()])
    })
}
