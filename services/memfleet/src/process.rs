//! The roles of this process, put together from the configuration: all of them on a node, one in a fleet. What a role asks of
//! another is in this process or behind the network, as `peers` says; neither side can tell. It adds no behaviour.

mod agents;
mod model;
mod parts;
mod reader;
mod serving;
mod storage;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use memfleet_consolidator::{LocalConsolidator, Plotter, Rebinder, Relater, Replotter};
use memfleet_constructor::{Constructor, Deriver, Refiner, Reteller, Semanticizer};
use memfleet_domain::Clock;
use memfleet_domain::time::SystemClock;
use memfleet_gateway::Gateway;
use memfleet_gateway::access::{Access, Sources};
use memfleet_gateway::node_policy::NodePolicy;
use memfleet_gateway::settings::SettingsCache;
use memfleet_gateway::shares::TenantShares;
use memfleet_judge::{Comparer, LocalJudge};
use memfleet_openai::OpenAi;
use memfleet_ports::access::Tokens;
use memfleet_ports::audit::AuditLog;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::Events;
use memfleet_ports::health::Health;
use memfleet_ports::refresher::Refresher;
use memfleet_ports::retriever::Retriever;
use memfleet_ports::turn_reader::TurnReader;
use memfleet_prompts::Adviser;
use memfleet_refresher::{LocalRefresher, Reviewer};
use memfleet_retrieval::ModelCalibrations;
use memfleet_retriever::{LocalRetriever, Remote};
use memfleet_rpc::fleet::{Options as PeerOptions, Peers};
use memfleet_rpc::fleet::{RemoteEmbedder, RemoteRefresher, RemoteRetriever, RemoteTurnReader};
use memfleet_runtime::BoxError;
use memfleet_runtime::telemetry::Readiness;
use memfleet_tls::Tls;

use crate::config::{Config, Jwt, Retrieval, elsewhere};
use crate::models::ConfiguredModels;
use crate::role::Role;
use model::ModelSet;
use reader::ModelReader;
use storage::Storage;

/// The roles of this process. Nothing runs before [`Process::spawn`].
pub struct Process {
    /// The public API.
    pub gateway: Option<Arc<Gateway>>,
    constructor: Option<Constructor>,
    deriver: Option<Arc<Deriver>>,
    refiner: Option<Refiner>,
    reteller: Option<Reteller>,
    semanticizer: Option<Semanticizer>,
    comparer: Option<Comparer>,
    reviewer: Option<Reviewer>,
    consolidator: Option<Arc<LocalConsolidator>>,
    plotter: Option<Arc<Plotter>>,
    rebinder: Option<Rebinder>,
    replotter: Option<Replotter>,
    relater: Option<Arc<Relater>>,
    judge: Option<Arc<LocalJudge>>,
    retriever: Option<Arc<LocalRetriever>>,
    refresher: Option<Arc<LocalRefresher>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Reader of turns over the models here, which embedders serve.
    turn_reader: Option<Arc<dyn TurnReader>>,
    storage: Option<Storage>,
    tls: Option<Tls>,
    /// Whom the roles here ask for vectors, once one does.
    asked: Option<Arc<dyn Embedder>>,
    /// Reader of turns that the roles here ask, once one does.
    asked_reader: Option<Arc<dyn TurnReader>>,
    /// The language model of the roles here, once one asks for it.
    author: Option<Adviser>,
    /// The adapter behind it.
    model: Option<OpenAi>,
    /// The audit log and how long it is kept, if it is.
    audit: Option<(Arc<dyn AuditLog>, Duration)>,
    events: Events,
    health: Health,
    calibrations: ModelCalibrations,
    /// Name of the model whose vectors all spaces are to have beside their own
    /// ([`Config::second_model`]).
    second_model: Option<String>,
}

/// Whether a process with these roles computes vectors itself, and so needs the model.
pub fn needs_model(config: &Config, roles: &[Role]) -> bool {
    let asks = [
        Role::Gateway,
        Role::Constructor,
        Role::Retriever,
        Role::Refresher,
        Role::Consolidator,
        Role::Judge,
    ];
    let is_here = elsewhere(&config.peers.embedder).is_none();
    roles.contains(&Role::Embedder) || is_here && roles.iter().any(|role| asks.contains(role))
}

impl Process {
    /// Connects the roles with what each asks of the others; `models` as [`needs_model`] says.
    /// `readiness` hears what is waited for.
    pub async fn compose(
        config: &Config,
        roles: &[Role],
        models: Option<&ConfiguredModels>,
        calibrations: ModelCalibrations,
        readiness: &Readiness,
    ) -> Result<Self, BoxError> {
        let mut process = Self {
            gateway: None,
            constructor: None,
            deriver: None,
            refiner: None,
            reteller: None,
            semanticizer: None,
            comparer: None,
            reviewer: None,
            consolidator: None,
            plotter: None,
            rebinder: None,
            replotter: None,
            relater: None,
            judge: None,
            retriever: None,
            refresher: None,
            embedder: None,
            turn_reader: None,
            storage: None,
            tls: tls(config)?,
            asked: None,
            asked_reader: None,
            author: None,
            model: None,
            audit: None,
            events: Events::default(),
            health: Health::default(),
            calibrations,
            second_model: config.second_model().map(str::to_owned),
        };
        if let Some(models) = models {
            let models = Arc::new(ModelSet::open(&config.model, models)?);
            let reader = ModelReader::new(models.clone(), config.model.queue);
            process.embedder = Some(models);
            process.turn_reader = Some(Arc::new(reader));
        }
        if roles != [Role::Embedder] {
            let storage = process
                .storage
                .insert(Storage::open(config, readiness).await?);
            let retention = config.audit.retention();
            process.audit = retention.map(|retention| (storage.log.clone(), retention));
        }
        for role in roles {
            match role {
                Role::Gateway => {
                    let access = process.new_access(config).await?;
                    let gateway = Arc::new(process.new_gateway(config, access)?);
                    process.gateway = Some(gateway.clone());
                    std::thread::spawn(move || gateway.warm_up());
                }
                Role::Constructor => {
                    process.constructor = Some(process.new_constructor(config)?);
                    process.deriver = Some(Arc::new(process.new_deriver(config)?));
                    process.refiner = process.new_refiner(config)?;
                    process.reteller = process.new_reteller(config)?;
                    process.semanticizer = process.new_semanticizer(config)?;
                }
                Role::Retriever => {
                    process.retriever(config)?;
                }
                Role::Judge => {
                    process.judge = Some(Arc::new(process.new_judge(config)?));
                    process.comparer = process.new_comparer(config)?;
                }
                Role::Refresher => {
                    process.refresher(config)?;
                    process.reviewer = process.new_reviewer(config)?;
                }
                Role::Consolidator => {
                    let consolidator = Arc::new(process.new_consolidator(config)?);
                    let plotter = Plotter::new(consolidator.clone(), config.consolidator.options());
                    process.plotter = Some(Arc::new(plotter));
                    let graph = process.storage().graph.clone();
                    process.relater = graph.map(|graph| {
                        let consolidator = consolidator.clone();
                        Arc::new(Relater {
                            consolidator,
                            graph,
                        })
                    });
                    process.consolidator = Some(consolidator);
                    process.rebinder = process.new_rebinder(config)?;
                    process.replotter = process.new_replotter(config)?;
                }
                Role::Embedder => {}
            }
        }
        Ok(process)
    }

    /// Who may call, with the bootstrap key in the store.
    async fn new_access(&self, config: &Config) -> Result<Arc<Access>, BoxError> {
        let storage = self.storage();
        let access = Access::new(Sources {
            keys: storage.keys.clone(),
            tenants: storage.tenants.clone(),
            log: self.audit.as_ref().map(|(log, _)| log.clone()),
            configured: config.auth.configured(),
            tokens: tokens(&config.auth.jwt),
            clock: clock(),
        });
        if let Some(secret) = &config.auth.bootstrap_key {
            access.bootstrap(secret.expose()).await?;
        }
        if access.is_open().await.unwrap_or_default() {
            tracing::info!(
                "no key is asked for: every caller is an operator of the tenant `default`"
            );
        }
        Ok(Arc::new(access))
    }

    fn new_gateway(&mut self, config: &Config, access: Arc<Access>) -> Result<Gateway, BoxError> {
        let credential = config.internal.credential();
        // Retrievers elsewhere have processors of their own.
        let shares = match elsewhere(&config.peers.retriever) {
            Some(_) => TenantShares::unbounded(),
            None => TenantShares::default(),
        };
        let retriever = self.asked_retriever(config)?;
        let refresher: Arc<dyn Refresher> = match elsewhere(&config.peers.refresher) {
            Some(url) => Arc::new(RemoteRefresher {
                peers: self.peers(url)?,
                credential,
            }),
            None => self.refresher(config)?,
        };
        let embedder = self.asked_embedder(config)?;
        let reader = self.asked_reader(config)?;
        let author = self.author(config)?;
        let storage = self.storage();
        Ok(Gateway {
            queue: storage.queue.clone(),
            ledger: storage.ledger.clone(),
            spaces: storage.spaces.clone(),
            knowledge: storage.knowledge.clone(),
            graph: storage.graph.clone(),
            retriever,
            refresher,
            author,
            usage: storage.usage.clone(),
            policy: Arc::new(NodePolicy::new(config.assembly.policy.clone())),
            settings: Arc::new(SettingsCache::new(storage.settings.clone())),
            exchanges: storage.exchanges.clone(),
            injections: storage.injections.clone(),
            tokenizers: config.assembly.tokenizers()?,
            routing: Arc::default(),
            keys: Arc::default(),
            rejections: Arc::default(),
            shares: Arc::new(shares),
            embedder,
            switches: storage.switches.clone(),
            reader,
            events: self.events.clone(),
            health: self.health.clone(),
            access,
            clock: clock(),
            options: gateway_options(config),
        })
    }

    fn new_constructor(&mut self, config: &Config) -> Result<Constructor, BoxError> {
        let embedder = self.asked_embedder(config)?;
        let storage = self.storage();
        Ok(Constructor {
            queue: storage.queue.clone(),
            ledger: storage.ledger.clone(),
            spaces: storage.spaces.clone(),
            embedder,
            feed: storage.feed.clone(),
            switches: storage.switches.clone(),
            events: self.events.clone(),
            clock: clock(),
            options: memfleet_constructor::Options {
                turns_per_round: config.ingestion.turns_per_round,
                ..memfleet_constructor::Options::default()
            },
        })
    }

    /// Retriever that the roles of this process ask.
    fn asked_retriever(&mut self, config: &Config) -> Result<Arc<dyn Retriever>, BoxError> {
        Ok(match elsewhere(&config.peers.retriever) {
            Some(url) => Arc::new(RemoteRetriever {
                peers: self.peers(url)?,
                credential: config.internal.credential(),
            }),
            None => self.retriever(config)?,
        })
    }

    /// The retriever of this process, made when it is first asked for.
    fn retriever(&mut self, config: &Config) -> Result<Arc<LocalRetriever>, BoxError> {
        if let Some(retriever) = &self.retriever {
            return Ok(retriever.clone());
        }
        let embedder = self.asked_embedder(config)?;
        let candidates = config.retrieval.candidates;
        let calibrations = self.calibrations.clone().with_candidates(candidates);
        let retriever = self.new_retriever(embedder, &config.retrieval, calibrations);
        Ok(self.retriever.insert(Arc::new(retriever)).clone())
    }

    /// A retriever over the memory of this process.
    pub fn new_retriever(
        &self,
        embedder: Arc<dyn Embedder>,
        config: &Retrieval,
        calibrations: ModelCalibrations,
    ) -> LocalRetriever {
        let options = memfleet_retriever::Options {
            index_cache: config.index_cache.as_usize(),
            token_cache: config.token_cache.as_usize(),
            answer_bytes: memfleet_retriever::MAX_ANSWER_BYTES,
            calibrations,
        };
        let storage = self.storage();
        LocalRetriever::new(
            storage.feed.clone(),
            storage.candidates.clone().map(|store| Remote {
                store,
                held: config.held_passages,
                cold: config.cold_passages,
            }),
            storage.ledger.clone(),
            storage.spaces.clone(),
            embedder,
            options,
        )
    }

    /// The refresher of this process, made when it is first asked for.
    fn refresher(&mut self, config: &Config) -> Result<Arc<LocalRefresher>, BoxError> {
        if let Some(refresher) = &self.refresher {
            return Ok(refresher.clone());
        }
        let indexer = self.indexer(config)?;
        let storage = self.storage();
        let refresher = LocalRefresher {
            erasure: storage.erasure.clone(),
            queue: storage.queue.clone(),
            spaces: storage.spaces.clone(),
            knowledge: storage.knowledge.clone(),
            feed: storage.feed.clone(),
            indexer,
            events: self.events.clone(),
            clock: clock(),
        };
        Ok(self.refresher.insert(Arc::new(refresher)).clone())
    }

    /// Whom the roles of this process ask for vectors.
    fn asked_embedder(&mut self, config: &Config) -> Result<Arc<dyn Embedder>, BoxError> {
        if let Some(asked) = &self.asked {
            return Ok(asked.clone());
        }
        let asked: Arc<dyn Embedder> = match elsewhere(&config.peers.embedder) {
            Some(url) => {
                let credential = config.internal.credential();
                Arc::new(RemoteEmbedder::new(self.peers(url)?, credential))
            }
            None => {
                let own = self.embedder.clone();
                own.expect("a process that asks itself loads the model")
            }
        };
        Ok(self.asked.insert(asked).clone())
    }

    /// Reader of turns of the roles of this process: beside the embedder that they ask.
    fn asked_reader(&mut self, config: &Config) -> Result<Arc<dyn TurnReader>, BoxError> {
        if let Some(asked) = &self.asked_reader {
            return Ok(asked.clone());
        }
        let asked: Arc<dyn TurnReader> = match elsewhere(&config.peers.embedder) {
            Some(url) => Arc::new(RemoteTurnReader {
                peers: self.peers(url)?,
                credential: config.internal.credential(),
            }),
            None => {
                let own = self.turn_reader.clone();
                own.expect("a process that asks itself loads the model")
            }
        };
        Ok(self.asked_reader.insert(asked).clone())
    }

    /// The replicas of a role elsewhere.
    fn peers(&self, url: &str) -> Result<Peers, BoxError> {
        let tls = self.tls.clone();
        Ok(Peers::watch(&PeerOptions {
            tls,
            ..PeerOptions::new(url)
        })?)
    }

    fn storage(&self) -> &Storage {
        self.storage
            .as_ref()
            .expect("every role but the embedder opens it")
    }
}

/// The certificates, where any connection is encrypted.
fn tls(config: &Config) -> Result<Option<Tls>, BoxError> {
    let needed = config.tls.certificate.is_some() || config.peers.are_encrypted();
    let tls = needed.then(|| Tls::load(config.tls.files()));
    Ok(tls.transpose()?)
}

fn gateway_options(config: &Config) -> memfleet_gateway::Options {
    memfleet_gateway::Options {
        max_queued_turns: config.ingestion.max_queued_turns,
        max_queued_bytes: config.ingestion.max_queued_size.as_u64(),
        max_exchanges: config.store.max_exchanges,
        max_injections: config.store.max_injections,
        quality: config.retrieval.quality,
        ..memfleet_gateway::Options::default()
    }
}

/// What believes the tokens of the configured issuer.
fn tokens(config: &Jwt) -> Option<Arc<dyn Tokens>> {
    let (Some(issuer), Some(audience)) = (&config.issuer, &config.audience) else {
        return None;
    };
    let options = memfleet_oidc::Options {
        issuer: issuer.clone(),
        audience: audience.clone(),
        jwks_url: config.jwks_url.clone(),
        tenant_claim: config.tenant_claim.clone(),
        scope_claim: config.scope_claim.clone(),
        pause: Duration::from_secs(5),
    };
    Some(Arc::new(memfleet_oidc::Issuer::new(options)))
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}
