//! What a search asks of the store for the spaces of which it has outlines only: where its words are, what comes near its vector,
//! and the passages of its candidates. Spaces that are held are not asked for.

use memfleet_domain::Fault;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::candidates::Among;
use memfleet_retrieval::{Candidates, Excerpt, Lexical, Plan, Searched, Weights, wanted};

use crate::cache::Reading;
use crate::search::Target;

/// By space; absent where the index has it all.
pub(crate) type Excerpts = Vec<Option<Excerpt>>;

/// Where the words of a plan are.
pub(crate) async fn look_up(
    targets: &[Target],
    readings: &[Reading],
    plan: &Plan,
) -> Result<Excerpts, Fault> {
    let mut excerpts = Vec::with_capacity(readings.len());
    for (target, reading) in targets.iter().zip(readings) {
        let Some(outline) = &reading.outline else {
            excerpts.push(None);
            continue;
        };
        let mut excerpt = Excerpt::new(&reading.index, outline.sample.clone());
        let terms = plan.words();
        let found = outline.store.postings(&target.scope, &terms).await?;
        excerpt.set_postings(&reading.index, terms, found);
        excerpts.push(Some(excerpt));
    }
    Ok(excerpts)
}

/// What is to be asked of a space by vector.
pub(crate) struct Question {
    space: usize,
    /// Those that may be found, …
    among: Among,
    limit: usize,
    /// … and those that words find best.
    best: Among,
}

/// The questions of a search; none where it looks at every turn anyway.
pub(crate) fn questions(
    spaces: &[Searched<'_>],
    lexical: &Lexical,
    weights: &Weights,
) -> Vec<Question> {
    let outlines = (0_usize..)
        .zip(spaces)
        .filter(|(_, it)| it.excerpt.is_some());
    let question = |(space, searched): (usize, &Searched<'_>)| Question {
        space,
        among: searched.index.among(&searched.eligible),
        limit: wanted(spaces, space, weights),
        best: lexical.best(spaces, space).into_iter().collect(),
    };
    let questions = outlines.map(question);
    questions.filter(|question| question.limit > 0).collect()
}

/// Asks what comes near the vector.
pub(crate) async fn ask(
    targets: &[Target],
    readings: &[Reading],
    excerpts: &mut Excerpts,
    questions: Vec<Question>,
    (embedding, vector): (&EmbeddingSpace, &[i8]),
) -> Result<(), Fault> {
    for question in questions {
        let (scope, reading) = (&targets[question.space].scope, &readings[question.space]);
        let (Some(outline), Some(excerpt)) = (&reading.outline, &mut excerpts[question.space])
        else {
            continue;
        };
        let nearest = |among, limit| {
            let embedding = Some(embedding);
            outline
                .store
                .nearest(scope, embedding, vector, among, limit)
        };
        let near = nearest(&question.among, question.limit as u32).await?;
        excerpt.add_near(&reading.index, near);
        let words = nearest(&question.best, question.best.len() as u32).await?;
        excerpt.add_near(&reading.index, words);
    }
    Ok(())
}

/// Reads the passages that the second stage looks at.
pub(crate) async fn read_passages(
    targets: &[Target],
    readings: &[Reading],
    excerpts: &mut Excerpts,
    embedding: Option<&EmbeddingSpace>,
    candidates: &Candidates,
) -> Result<(), Fault> {
    let spaces = targets.iter().zip(readings).zip(excerpts);
    for (((target, reading), excerpt), needed) in spaces.zip(candidates.needed()) {
        if let (Some(outline), Some(excerpt)) = (&reading.outline, excerpt) {
            let missing = excerpt.missing(needed);
            let passages = outline.store.passages(&target.scope, embedding, &missing);
            let found = passages.await?;
            excerpt.set_passages(&reading.index, needed, found);
        }
    }
    Ok(())
}
