//! The word lists of a language, as they are in `data/rules/<language>.toml`: phrases between commas.

use serde::Deserialize;

/// What a phrase does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Opens a conversation; a name may follow.
    Greeting,
    /// Thanks; a name may follow.
    Thanks,
    /// Ends a conversation; a name may follow.
    Farewell,
    /// How are you, well wishes, praise, apologies.
    Courtesy,
    /// Says that something was understood.
    Acknowledgement,
    /// Yes, no, ok: an acknowledgement in a conversation, undecided as its first words.
    Answer,
    /// May stand beside the others, and is nothing by itself.
    Filler,
}

impl Kind {
    /// As it is in the id of a rule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greeting => "greeting",
            Self::Thanks => "thanks",
            Self::Farewell => "farewell",
            Self::Courtesy => "courtesy",
            Self::Acknowledgement => "acknowledgement",
            Self::Answer => "answer",
            Self::Filler => "filler",
        }
    }

    /// Whether a name may follow: "hi Anna".
    pub fn takes_name(self) -> bool {
        matches!(self, Self::Greeting | Self::Thanks | Self::Farewell)
    }
}

/// One language's lists.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lists {
    greetings: String,
    thanks: String,
    farewells: String,
    courtesies: String,
    acknowledgements: String,
    answers: String,
    fillers: String,
    /// Syllables that laughter repeats.
    laughter: String,
    /// What refers to memory in so many words.
    recall: String,
    /// What looks like a name after a greeting and is the rest of a title.
    no_names: String,
}

impl Lists {
    /// All phrases of pleasantries.
    pub fn pleasantries(&self) -> impl Iterator<Item = (Kind, &str)> {
        let lists = [
            (Kind::Greeting, &self.greetings),
            (Kind::Thanks, &self.thanks),
            (Kind::Farewell, &self.farewells),
            (Kind::Courtesy, &self.courtesies),
            (Kind::Acknowledgement, &self.acknowledgements),
            (Kind::Answer, &self.answers),
            (Kind::Filler, &self.fillers),
        ];
        lists
            .into_iter()
            .flat_map(|(kind, list)| phrases(list).map(move |phrase| (kind, phrase)))
    }

    /// See the field.
    pub fn laughter(&self) -> impl Iterator<Item = &str> {
        phrases(&self.laughter)
    }

    /// See the field.
    pub fn recall(&self) -> impl Iterator<Item = &str> {
        phrases(&self.recall)
    }

    /// See the field.
    pub fn no_names(&self) -> impl Iterator<Item = &str> {
        phrases(&self.no_names)
    }
}

fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|phrase| !phrase.is_empty())
}
