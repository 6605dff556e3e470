//! The agents that follow every space: facts from turns, conflicts between facts, what becomes of them.

use std::sync::Arc;

use memfleet_consolidator::{LocalConsolidator, Rebinder, Replotter};
use memfleet_constructor::{
    Deriver, Extractor, ModelExtractor, NoExtractor, Rebuilder, Refiner, Reteller, Semanticizer,
    StatementExtractor, Summariser, TopicFilter,
};
use memfleet_judge::{Comparer, LocalJudge};
use memfleet_openai::OpenAi;
use memfleet_ports::knowledge::Stage;
use memfleet_prompts::{Adviser, Press};
use memfleet_refresher::Reviewer;
use memfleet_runtime::BoxError;
use memfleet_runtime::lifecycle::Lifecycle;
use memfleet_workers::{Agent, Follower, Heard, Indexer};

use super::{Process, clock};
use crate::config::Config;

impl Process {
    pub(super) fn new_deriver(&mut self, config: &Config) -> Result<Deriver, BoxError> {
        let indexer = self.indexer(config)?;
        let extractor: Arc<dyn Extractor> = match config.has_reader() {
            true => Arc::new(StatementExtractor {
                reader: self.asked_reader(config)?,
            }),
            false => Arc::new(NoExtractor),
        };
        if !config.has_reader() && config.language_model.endpoint().is_none() {
            tracing::warn!(
                "no facts are derived: set `model.multilingual` to `multilingual-e5-small`, or configure a language model"
            );
        }
        let storage = self.storage();
        let of_node = config.assembly.policy.topics.clone().unwrap_or_default();
        let topics = TopicFilter::new(storage.settings.clone(), indexer.embedder.clone(), of_node);
        Ok(Deriver {
            ledger: storage.ledger.clone(),
            feed: storage.feed.clone(),
            knowledge: storage.knowledge.clone(),
            indexer,
            extractor,
            topics: Arc::new(topics),
            events: self.events.clone(),
            clock: clock(),
        })
    }

    /// The one behind it with a language model, where one is configured.
    pub(super) fn new_refiner(&mut self, config: &Config) -> Result<Option<Refiner>, BoxError> {
        let read = self.author(config)?.zip(self.deriver.clone());
        Ok(read.map(|(author, deriver)| Refiner {
            deriver,
            model: Arc::new(ModelExtractor::new(author)),
        }))
    }

    /// The one behind the rules that cut episodes.
    pub(super) fn new_reteller(&mut self, config: &Config) -> Result<Option<Reteller>, BoxError> {
        let told = self.author(config)?.zip(self.deriver.clone());
        Ok(told.map(|(adviser, deriver)| Reteller {
            deriver,
            adviser,
            heard: Heard::default(),
        }))
    }

    /// The one behind the stories that a model put together.
    pub(super) fn new_semanticizer(
        &mut self,
        config: &Config,
    ) -> Result<Option<Semanticizer>, BoxError> {
        let read = self.author(config)?.zip(self.deriver.clone());
        Ok(read.map(|(adviser, deriver)| Semanticizer {
            deriver,
            adviser,
            heard: Heard::default(),
        }))
    }

    /// The language model, where one is configured; the roles of a process share its places and its breaker.
    pub(super) fn author(&mut self, config: &Config) -> Result<Option<Adviser>, BoxError> {
        if let (None, Some(options)) = (&self.author, config.language_model.endpoint()) {
            let model = OpenAi::new(options, self.storage().usage.clone(), clock())?;
            self.model = Some(model.clone());
            self.author = Some(Adviser {
                model: Arc::new(model),
                // Nobody outside may guess how prompts are fenced in.
                press: Arc::new(Press::new(rand::random())),
            });
        }
        Ok(self.author.clone())
    }

    pub(super) fn new_judge(&mut self, config: &Config) -> Result<LocalJudge, BoxError> {
        let retriever = self.asked_retriever(config)?;
        let reader = self.asked_reader(config)?;
        let storage = self.storage();
        Ok(LocalJudge {
            knowledge: storage.knowledge.clone(),
            feed: storage.feed.clone(),
            ledger: storage.ledger.clone(),
            retriever,
            reader,
            events: self.events.clone(),
            clock: clock(),
        })
    }

    pub(super) fn new_consolidator(
        &mut self,
        config: &Config,
    ) -> Result<LocalConsolidator, BoxError> {
        let indexer = self.indexer(config)?;
        let storage = self.storage();
        Ok(LocalConsolidator {
            ledger: storage.ledger.clone(),
            feed: storage.feed.clone(),
            knowledge: storage.knowledge.clone(),
            indexer,
            events: self.events.clone(),
            clock: clock(),
            shelf: Arc::default(),
        })
    }

    /// The ones behind the rules that bind and put together.
    pub(super) fn new_rebinder(&mut self, config: &Config) -> Result<Option<Rebinder>, BoxError> {
        let bound = self.author(config)?.zip(self.consolidator.clone());
        Ok(bound.map(|(adviser, consolidator)| Rebinder {
            consolidator,
            adviser,
            heard: Heard::default(),
        }))
    }

    pub(super) fn new_replotter(&mut self, config: &Config) -> Result<Option<Replotter>, BoxError> {
        let options = config.consolidator.options();
        let plotted = self.author(config)?.zip(self.consolidator.clone());
        Ok(plotted.map(|(adviser, consolidator)| Replotter {
            consolidator,
            fragments: options.fragments,
            adviser,
            heard: Heard::default(),
        }))
    }

    /// The ones behind judge and refresher.
    pub(super) fn new_comparer(&mut self, config: &Config) -> Result<Option<Comparer>, BoxError> {
        let compared = self.author(config)?.zip(self.judge.clone());
        Ok(compared.map(|(adviser, judge)| Comparer {
            judge: (*judge).clone(),
            adviser,
        }))
    }

    pub(super) fn new_reviewer(&mut self, config: &Config) -> Result<Option<Reviewer>, BoxError> {
        let refresher = self.refresher(config)?;
        let ledger = self.storage().ledger.clone();
        Ok(self.author(config)?.map(|adviser| Reviewer {
            refresher: (*refresher).clone(),
            ledger,
            adviser,
        }))
    }

    /// What makes derived texts findable.
    pub(super) fn indexer(&mut self, config: &Config) -> Result<Indexer, BoxError> {
        let embedder = self.asked_embedder(config)?;
        let spaces = self.storage().spaces.clone();
        Ok(Indexer { spaces, embedder })
    }

    /// Starts those of this process that are among `stages`.
    pub(super) fn spawn_agents(&self, stages: &[Stage], process: &mut Lifecycle) {
        for (stage, agent) in self.agents() {
            if let Some(agent) = agent.filter(|_| stages.contains(&stage)) {
                self.follow(process, stage, agent);
            }
        }
    }

    /// Works through all that an agent of this process is behind with, and returns.
    pub async fn work_off(&self, stage: Stage) {
        let agent = self.agents().into_iter().find(|(of, _)| *of == stage);
        if let Some(agent) = agent.and_then(|(_, agent)| agent) {
            let follower = self.follower(stage);
            while follower.sweep(&*agent).await {}
        }
    }

    /// The agents of this process.
    fn agents(&self) -> [(Stage, Option<Arc<dyn Agent>>); 15] {
        let deriver = self.deriver.clone().map(|agent| agent as Arc<dyn Agent>);
        let summariser = self
            .deriver
            .clone()
            .map(|rules| Arc::new(Summariser(rules)) as Arc<dyn Agent>);
        let rebuilder = self
            .deriver
            .clone()
            .map(|rules| Arc::new(Rebuilder(rules)) as Arc<dyn Agent>);
        let refiner = self
            .refiner
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        let reteller = self
            .reteller
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        let consolidator = self
            .consolidator
            .clone()
            .map(|agent| agent as Arc<dyn Agent>);
        let plotter = self.plotter.clone().map(|agent| agent as Arc<dyn Agent>);
        let rebinder = self
            .rebinder
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        let replotter = self
            .replotter
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        let semanticizer = self
            .semanticizer
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        let relater = self.relater.clone().map(|agent| agent as Arc<dyn Agent>);
        let judge = self.judge.clone().map(|agent| agent as Arc<dyn Agent>);
        let comparer = self
            .comparer
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        let refresher = self.refresher.clone().map(|agent| agent as Arc<dyn Agent>);
        let reviewer = self
            .reviewer
            .clone()
            .map(|agent| Arc::new(agent) as Arc<dyn Agent>);
        [
            (Stage::Derive, deriver),
            (Stage::Episodes, summariser),
            (Stage::Rebuild, rebuilder),
            (Stage::Refine, refiner),
            (Stage::Retell, reteller),
            (Stage::Bind, consolidator),
            (Stage::Consolidate, plotter),
            (Stage::Rebind, rebinder),
            (Stage::Replot, replotter),
            (Stage::Semanticize, semanticizer),
            (Stage::Relate, relater),
            (Stage::Judge, judge),
            (Stage::Compare, comparer),
            (Stage::Settle, refresher),
            (Stage::Review, reviewer),
        ]
    }

    fn follow(&self, process: &mut Lifecycle, stage: Stage, agent: Arc<dyn Agent>) {
        let follower = self.follower(stage);
        self.supervise(process, stage.name(), move |stop| {
            let (follower, agent) = (follower.clone(), agent.clone());
            async move { follower.run(&*agent, stop).await }
        });
    }

    fn follower(&self, stage: Stage) -> Follower {
        Follower {
            knowledge: self.storage().knowledge.clone(),
            stage,
            events: self.events.clone(),
            clock: clock(),
        }
    }
}
