//! Short turns of the length that people write in a chat.

const OPENINGS: [&str; 8] = [
    "Nadia: Hey, good to hear from you!",
    "Paulo: You will not believe what happened at work today.",
    "Nadia: I have been meaning to ask you something.",
    "Paulo: That sounds wonderful, tell me more.",
    "Nadia: So the weather finally changed here,",
    "Paulo: I know exactly what you mean.",
    "Nadia: Guess who I met at the market this morning!",
    "Paulo: Sorry for the late answer, it was a long week.",
];

const MIDDLES: [&str; 6] = [
    "We started the ceramics class on Thursday and I already broke two bowls.",
    "My cousin is moving to Tallinn in August, so we are planning a farewell dinner.",
    "The kids want to go camping again, but last time it rained for three days.",
    "I finished the book you lent me and I still think about the ending.",
    "Our old dog had an operation on her paw and is recovering well.",
    "They offered me the position in the other team, and I have until Monday to decide.",
];

const ENDINGS: [&str; 5] = [
    "What do you think?",
    "How are things on your side?",
    "Let me know if you want to join us, there is room in the car.",
    "",
    "I will send you some photos later.",
];

/// `count` turns, always the same ones.
pub fn texts(count: usize) -> Vec<String> {
    let turn = |at: usize| {
        let (opening, middle) = (OPENINGS[at % OPENINGS.len()], MIDDLES[at / 3 % MIDDLES.len()]);
        format!("{opening} {middle} {}", ENDINGS[at / 7 % ENDINGS.len()])
    };
    (0..count).map(turn).collect()
}
