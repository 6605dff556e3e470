//! Gate 2: whether a query is like examples that need no memory, by its vector (AMP items 53–57).
//!
//! It skips only when sure: enough like `none`, by a margin less like `memory`, and in words that the model can read. Whatever is missing
//! makes it abstain, and the search goes on. The query's vector is the one that the search uses: nothing is embedded twice.

mod exemplars;
mod similarity;

use memfleet_domain::assembly::{GateBound, GateOutcome, Reason};
use memfleet_domain::embedding::EmbeddingSpace;

pub use exemplars::{Decision, Error as ExemplarsError, Exemplars};

/// Examples as vectors of one embedding space.
#[derive(Debug, Clone)]
pub struct Router {
    decision: Decision,
    version: String,
    space: EmbeddingSpace,
    dimensions: usize,
    memory: Vec<Vec<i8>>,
    none: Vec<Vec<i8>>,
}

/// What is to be routed.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// As the user wrote it.
    pub text: &'a str,
    /// Its sentence vector, as in `memfleet_domain::embedding`; empty: there is none.
    pub vector: &'a [i8],
    /// The space of the vector.
    pub space: &'a EmbeddingSpace,
}

/// Verdict of gate 2 on a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Routing {
    /// `Pass`, `Skip` or `Abstain`.
    pub outcome: GateOutcome,
    /// Why.
    pub reason: Reason,
    /// What was measured; none where it was not looked at.
    pub similarity: Option<Similarity>,
    /// Bounds of a skip, met and unmet; empty where it was not looked at.
    pub bounds: Vec<GateBound>,
}

/// What decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// Likeness to examples that need memory, in −1..=1.
    pub memory: f32,
    /// Likeness to examples that need none, in −1..=1.
    pub none: f32,
    /// `none` less `memory`.
    pub margin: f32,
    /// The margin from which a query is skipped.
    pub threshold: f32,
}

/// Why no router can be made (AMP item 56).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not one vector an example.
    #[error("{given} vectors for {wanted} examples")]
    Count {
        /// Vectors.
        given: usize,
        /// Examples.
        wanted: usize,
    },
    /// Vectors of different lengths, or none.
    #[error("vectors of {given} dimensions where others have {wanted}")]
    Dimensions {
        /// Of the one.
        given: usize,
        /// Of the first.
        wanted: usize,
    },
    /// A vector without a direction.
    #[error("the vector of example {0} is zero")]
    Zero(usize),
}

impl Router {
    /// A router of examples whose vectors are in the order of [`Exemplars::texts`].
    pub fn new(
        exemplars: &Exemplars,
        vectors: Vec<Vec<i8>>,
        space: EmbeddingSpace,
    ) -> Result<Self, Error> {
        let wanted = exemplars.memory.len() + exemplars.none.len();
        if vectors.len() != wanted {
            return Err(Error::Count {
                given: vectors.len(),
                wanted,
            });
        }
        let dimensions = vectors.first().map_or(0, Vec::len);
        for (place, vector) in vectors.iter().enumerate() {
            check(vector, dimensions, place + 1)?;
        }
        let mut memory = vectors;
        let none = memory.split_off(exemplars.memory.len());
        Ok(Self {
            decision: exemplars.decision.clone(),
            version: exemplars.version.clone(),
            space,
            dimensions,
            memory,
            none,
        })
    }

    /// Version of the examples.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The embedding space of the examples; a query of another is not compared.
    pub fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        (self.memory.len() + self.none.len()) * (self.dimensions + size_of::<Vec<i8>>())
    }

    /// Decides about one query; the same query always gets the same answer.
    pub fn route(&self, query: Query<'_>) -> Routing {
        if query.vector.iter().all(|&component| component == 0) {
            return Routing::abstain(Reason::NoVectors);
        }
        if *query.space != self.space || query.vector.len() != self.dimensions {
            return Routing::abstain(Reason::OtherEmbeddingSpace);
        }
        self.decide(query, self.similarity(query.vector))
    }

    fn similarity(&self, vector: &[i8]) -> Similarity {
        let neighbours = self.decision.neighbours;
        let memory = similarity::likeness(vector, &self.memory, neighbours);
        let none = similarity::likeness(vector, &self.none, neighbours);
        Similarity {
            memory,
            none,
            margin: none - memory,
            threshold: self.decision.margin,
        }
    }

    fn decide(&self, query: Query<'_>, similarity: Similarity) -> Routing {
        let decision = &self.decision;
        let mut bounds = vec![
            GateBound::at_least("margin", similarity.margin, decision.margin),
            GateBound::at_least("likeness", similarity.none, decision.likeness),
        ];
        bounds.extend(decision.readability(query.text));
        let (outcome, reason) = if similarity.margin <= 0.0 {
            (GateOutcome::Pass, Reason::NeedsMemory)
        } else if bounds.iter().all(|bound| bound.met) {
            (GateOutcome::Skip, Reason::NeedsNoMemory)
        } else {
            (GateOutcome::Abstain, Reason::Unsure)
        };
        Routing {
            outcome,
            reason,
            similarity: Some(similarity),
            bounds,
        }
    }
}

impl Routing {
    /// The gate cannot tell and looked at nothing: for example [`Reason::NoVectors`] where no router could be made (AMP item 55).
    pub fn abstain(reason: Reason) -> Self {
        Self {
            outcome: GateOutcome::Abstain,
            reason,
            similarity: None,
            bounds: Vec::new(),
        }
    }
}

fn check(vector: &[i8], wanted: usize, place: usize) -> Result<(), Error> {
    if vector.is_empty() || vector.len() != wanted {
        let given = vector.len();
        return Err(Error::Dimensions { given, wanted });
    }
    match vector.iter().all(|&component| component == 0) {
        true => Err(Error::Zero(place)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
