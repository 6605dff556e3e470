//! Code, logs and stack traces without a word to them. A fence with text around it, a comment that asks, and a line of prose are words.

/// The rule by which a text is code only.
pub fn find(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.starts_with("```") {
        return is_fenced(text).then_some("code.fence");
    }
    if text.starts_with(['{', '[']) && is_structured(text) {
        return Some("code.json");
    }
    is_lines(text).then_some("code.lines")
}

/// Whether fences hold all of it, and no comment in them asks.
fn is_fenced(text: &str) -> bool {
    let mut is_open = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("```") {
            if rest.split_whitespace().nth(1).is_some() {
                return false;
            }
            is_open = !is_open;
        } else if !is_open || asks(line) {
            return false;
        }
    }
    true
}

/// A comment or plain words with a question mark at the end.
fn asks(line: &str) -> bool {
    line.trim_end_matches(['*', '/', ' ', '-', '>'])
        .ends_with(['?', '？', '؟'])
        && line.split_whitespace().count() > 2
}

/// JSON with something of code in it: a list of words is a list of words.
fn is_structured(text: &str) -> bool {
    let parsed = serde_json::from_str::<serde_json::Value>(text);
    parsed.is_ok_and(|value| value.is_object() || (value.is_array() && text.contains('{')))
}

/// How a line looks.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    /// Only code looks so.
    Code,
    /// Code can look so.
    Neutral,
    /// It reads as language.
    Prose,
}

fn is_lines(text: &str) -> bool {
    let mut has_code = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match shape(line) {
            Shape::Code => has_code = true,
            Shape::Neutral => {}
            Shape::Prose => return false,
        }
    }
    has_code
}

/// Tells a line that only code, logs and traces have.
pub fn is_code(line: &str) -> bool {
    shape(line) == Shape::Code
}

fn shape(line: &str) -> Shape {
    let indented = line.starts_with([' ', '\t']);
    let line = line.trim();
    if is_log(line) || is_trace(line) {
        return Shape::Code;
    }
    let bare = without_strings(line);
    if asks(&bare) || (reads_as_language(&bare) && !is_query(&bare)) {
        return Shape::Prose;
    }
    if is_statement(&bare) || is_query(&bare) || opens_block(&bare) || is_markup(line) {
        return Shape::Code;
    }
    let has_letters = bare.chars().any(char::is_alphabetic);
    let has_signs = bare.contains(['(', '{', '[', '=', '<', '>', '}', ')', ']', ':', '"']);
    match indented || !has_letters || has_signs {
        true => Shape::Neutral,
        false => Shape::Prose,
    }
}

/// What is left when string literals are taken out; an open one goes to the end.
fn without_strings(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut quote = None;
    for letter in line.chars() {
        match quote {
            Some(open) if open == letter => quote = None,
            None if letter == '"' => quote = Some(letter),
            None => out.push(letter),
            Some(_) => {}
        }
    }
    out
}

/// Words that sentences have and code has not.
const SENTENCE: &[&str] = &[
    "the", "my", "your", "you", "we", "our", "us", "me", "please", "what", "how", "why", "when",
    "who", "which", "does", "can", "should", "would", "could", "there", "his", "her", "she", "he",
    "they", "was", "were", "are", "it", "an", "about", "remember", "i'm", "i've",
];

/// The most words in a row, without a sign between, that code has.
const MOST_WORDS: usize = 4;

fn reads_as_language(line: &str) -> bool {
    if line
        .chars()
        .any(|letter| !letter.is_ascii() && letter.is_alphabetic())
    {
        return true;
    }
    let mut run = 0;
    for word in line.split_whitespace() {
        let plain = word.trim_end_matches([',', '.', ':', ';', '!', '?']);
        if SENTENCE.contains(&plain.to_ascii_lowercase().as_str()) {
            return true;
        }
        let is_plain = !plain.is_empty() && plain.bytes().all(|it| it.is_ascii_alphabetic());
        run = if is_plain { run + 1 } else { 0 };
        if run > MOST_WORDS {
            return true;
        }
    }
    false
}

/// Ends like a statement and has an operator or a call in it.
fn is_statement(line: &str) -> bool {
    let has_operator = ["(", "=", "->", "=>", "::", "return "]
        .iter()
        .any(|it| line.contains(it));
    (line.ends_with([';', '{', '}']) && (has_operator || line.len() < 3 || line.ends_with("{ }")))
        || (line.ends_with(')') && line.contains(" = "))
}

fn is_query(line: &str) -> bool {
    let starts = [
        "SELECT ",
        "INSERT INTO ",
        "UPDATE ",
        "DELETE FROM ",
        "CREATE TABLE ",
        "ALTER TABLE ",
        "DROP TABLE ",
    ];
    let clauses = [" FROM ", " VALUES", " SET ", " WHERE ", " ADD ", "(", ";"];
    starts.iter().any(|it| line.starts_with(it)) && clauses.iter().any(|it| line.contains(it))
}

/// Heads of functions, types and includes.
fn opens_block(line: &str) -> bool {
    let heads = [
        "fn ",
        "pub ",
        "def ",
        "class ",
        "impl ",
        "function ",
        "func ",
        "public ",
        "private ",
        "for ",
        "while ",
        "if ",
        "async ",
        "struct ",
    ];
    let is_head = heads.iter().any(|head| line.starts_with(head));
    let is_include = line.starts_with("#include") || line.starts_with("#!/");
    is_include
        || (is_head && (line.ends_with(['{', '}']) || (line.ends_with(':') && line.contains('('))))
}

fn is_markup(line: &str) -> bool {
    line.starts_with('<') && line.ends_with('>') && (line.contains("</") || line.ends_with("/>"))
}

/// A time stamp with a level.
fn is_log(line: &str) -> bool {
    let starts = line
        .get(..4)
        .is_some_and(|year| year.bytes().all(|it| it.is_ascii_digit()));
    starts
        && ["ERROR", "WARN", "INFO", "DEBUG", "TRACE", "FATAL"]
            .iter()
            .any(|level| line.contains(level))
}

fn is_trace(line: &str) -> bool {
    line == "Traceback (most recent call last):"
        || (line.starts_with("File \"") && line.contains(", line "))
        || (line.starts_with("at ") && line.ends_with(')') && line.contains(':'))
        || line.starts_with("error[E")
}
