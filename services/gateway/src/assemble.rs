//! The `Assembly` service: finds memory for a prompt and renders what fits the budget.

mod story;

use async_trait::async_trait;
use memfleet_assembly::{Block, Candidate, Extent, Nonce, Options, Tokenizer};
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::space::Locale;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::assembly::{AssembleRequest, Assembled, AssembledItem, Assembly};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Found;
use tracing::field::Empty;
use tracing::{Span, instrument};
use uuid::Uuid;

use crate::Gateway;
use crate::candidates::{Eligible, eligible};
use crate::excerpts::sentence_scores;
use crate::memory::names;

#[async_trait]
impl Assembly for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant, spaces = %names(&request.query.spaces), k = request.query.k, tokens = Empty))]
    async fn assemble(
        &self,
        context: &Context,
        mut request: AssembleRequest,
    ) -> Result<Assembled, Fault> {
        let name = request.tokenizer.clone();
        // The vocabulary is read on first use: while the search runs.
        let tokenizer = tokio::task::spawn_blocking(move || tokenizer(&name));
        self.wait_for(context, &request.query.spaces, &request.wait_for)
            .await?;
        if !request.narratives.is_empty() && !self.narrow(context, &mut request).await? {
            return Ok(Assembled::default());
        }
        let found = self.search(context, &request.query).await?;
        let locale = self.locale(context, &request.query.spaces).await?;
        let tokenizer = tokenizer.await.map_err(|error| stopped(&error))??;
        let rendering = move || {
            let assembled = render(&request, &found, &tokenizer, &locale);
            (assembled, found)
        };
        let (assembled, found) = tokio::task::spawn_blocking(rendering)
            .await
            .map_err(|error| stopped(&error))?;
        Span::current().record("tokens", assembled.tokens);
        self.note_injected(context, &assembled, &found);
        Ok(assembled)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, texts = texts.len()))]
    async fn count_tokens(
        &self,
        context: &Context,
        name: &str,
        texts: &[String],
    ) -> Result<Vec<u32>, Fault> {
        let (name, texts) = (name.to_owned(), texts.to_vec());
        let count = move || {
            let tokenizer = tokenizer(&name)?;
            Ok(texts
                .iter()
                .map(|text| tokenizer.count(text) as u32)
                .collect())
        };
        tokio::task::spawn_blocking(count)
            .await
            .map_err(|error| stopped(&error))?
    }
}

impl Gateway {
    /// That of the first space of a query: its zone and its language are those of the answer.
    pub(crate) async fn locale(
        &self,
        context: &Context,
        spaces: &[SpaceId],
    ) -> Result<Locale, Fault> {
        let locale = match spaces.first() {
            Some(space) => self.spaces.locale(&context.scope(space)).await?,
            None => None,
        };
        Ok(locale.unwrap_or_default())
    }
}

fn tokenizer(name: &str) -> Result<Tokenizer, Fault> {
    Tokenizer::named(name).map_err(|error| Fault::invalid("tokenizer", error.to_string()))
}

fn stopped(error: &tokio::task::JoinError) -> Fault {
    Fault::internal(format!("assembling stopped: {error}"))
}

fn render(
    request: &AssembleRequest,
    found: &Found,
    tokenizer: &Tokenizer,
    locale: &Locale,
) -> Assembled {
    let turns = eligible(&found.hits);
    let texts = turns
        .iter()
        .map(|found| found.turn.accepted.content.searchable_text())
        .collect::<Vec<_>>();
    let scores = if request.excerpts {
        let language = Language::tagged(locale.language.as_deref());
        let analyzer = Analyzer::new(language);
        sentence_scores(&analyzer, &request.query.text, &turns, &texts)
    } else {
        Vec::new()
    };
    let candidates = candidates(&turns, &texts, &scores);
    let nonce = Uuid::now_v7().simple().to_string();
    // The random half of the id, shortened: every token of the wrapper is paid for.
    let nonce = Nonce::new(&nonce[nonce.len() - 8..]);
    let options = Options {
        max_items: request.max_items.map(|items| items as usize),
        per_item_tokens: request.max_item_tokens.map(|tokens| tokens as usize),
        excerpts: request.excerpts,
        time_zone: locale.time_zone.0,
        nonce,
        ..Options::new(request.budget_tokens as usize, tokenizer)
    };
    let block = memfleet_assembly::assemble(&candidates, &options);
    answer(block, &turns, found.degraded.clone())
}

fn candidates<'a>(
    turns: &'a [Eligible<'a>],
    texts: &'a [String],
    scores: &'a [Option<Vec<f32>>],
) -> Vec<Candidate<'a>> {
    let mut sessions = std::collections::HashMap::new();
    let pairs = turns.iter().zip(texts).enumerate();
    pairs
        .map(|(index, (found, text))| {
            let next = sessions.len() as u64;
            let turn = &found.turn.accepted;
            Candidate {
                session: *sessions.entry((found.space, &turn.session)).or_insert(next),
                position: found.turn.position.into(),
                speaker: turn.speaker.as_str(),
                event_time: turn.event_time,
                recorded_at: turn.recorded_at,
                outdated: found.outdated,
                text,
                score: found.score,
                sentence_scores: scores.get(index).and_then(Option::as_deref),
            }
        })
        .collect()
}

fn answer(block: Block, turns: &[Eligible<'_>], degraded: Vec<String>) -> Assembled {
    let items = block.items.iter().map(|item| {
        let found = &turns[item.candidate];
        AssembledItem {
            space: found.space.clone(),
            turn: found.turn.accepted.id,
            score: found.score,
            tokens: item.tokens as u32,
            excerpt: matches!(item.extent, Extent::Excerpt(_)),
        }
    });
    Assembled {
        items: items.collect(),
        tokens: block.tokens as u32,
        left_out: block.left_out.len() as u32,
        degraded,
        block: block.text,
    }
}
