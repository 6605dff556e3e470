//! Language models behind the agents.

use std::str::FromStr;

use memfleet_openai::options::{AgentOptions, Agents, Breaker, Options};
use memfleet_ports::usage::Limits;
use memfleet_runtime::config::{ByteSize, HumanDuration, Problem, Secret, Validate};
use serde::{Deserialize, Serialize};

/// An OpenAI-compatible endpoint. Without one agents work by rules and the reader of turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LanguageModel {
    /// Where it is: what stands before `/chat/completions`. Default none: no model is ever called.
    pub base_url: Option<String>,
    /// Its key. Default none.
    pub key: Option<Secret>,
    /// The model of every agent that has none of its own, as the endpoint names it. Default none.
    pub model: Option<String>,
    /// What a million tokens cost, as `model: read/written`, in any currency. Default none: models cost nothing.
    pub prices: Vec<String>,
    /// Requests that a tenant may make in a day (UTC). Default none: without limit.
    pub calls_per_day: Option<u64>,
    /// Tokens that a tenant may use in a day. Default none.
    pub tokens_per_day: Option<u64>,
    /// Money that a tenant may use in a day, in the currency of `prices`. Default none.
    pub money_per_day: Option<f64>,
    /// Longest time of opening a connection. Default 5 s.
    pub connect_timeout: HumanDuration,
    /// Longest pause within a streamed reply. Default 20 s.
    pub idle_timeout: HumanDuration,
    /// How often a request is sent again that the endpoint could not serve. Default 2.
    pub retries: usize,
    /// Requests at the same time. Default 8.
    pub concurrency: usize,
    /// Calls that wait for a place among them. Default 64.
    pub waiting: usize,
    /// Largest reply. Default 1 MiB.
    pub reply_limit: ByteSize,
    /// Memory for replies that equal calls are given again. Default 16 MiB.
    pub cache: ByteSize,
    /// Failures in a row after which the endpoint is left alone. Default 5.
    pub breaker_failures: u32,
    /// For how long; doubled with each further failure, up to 5 minutes. Default 10 s.
    pub breaker_pause: HumanDuration,
    /// Whether prompts and replies are written to the log, for debugging: they hold what people said. Default false.
    pub trace_payloads: bool,
    /// Facts and episodes.
    pub constructor: AgentModel,
    /// Queries.
    pub retriever: AgentModel,
    /// Relevance and conflicts.
    pub judge: AgentModel,
    /// Settling conflicts.
    pub refresher: AgentModel,
    /// Narratives.
    pub consolidator: AgentModel,
    /// Answers.
    pub answer: AgentModel,
}

/// What one agent uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentModel {
    /// Its model. Default none: `language_model.model`.
    pub model: Option<String>,
    /// Temperature, 0 to 2; an endpoint that refuses it is left to its own. Default 0.
    pub temperature: f32,
    /// Most tokens of a reply. Default 2048.
    pub max_tokens: u32,
    /// Longest time of a call. Default 30 s.
    pub timeout: HumanDuration,
}

impl Default for AgentModel {
    fn default() -> Self {
        Self {
            model: None,
            temperature: 0.0,
            max_tokens: 2048,
            timeout: HumanDuration::seconds(30),
        }
    }
}

impl Default for LanguageModel {
    fn default() -> Self {
        Self {
            base_url: None,
            key: None,
            model: None,
            constructor: AgentModel::default(),
            retriever: AgentModel::default(),
            judge: AgentModel::default(),
            refresher: AgentModel::default(),
            consolidator: AgentModel::default(),
            answer: AgentModel::default(),
            prices: Vec::new(),
            calls_per_day: None,
            tokens_per_day: None,
            money_per_day: None,
            connect_timeout: HumanDuration::seconds(5),
            idle_timeout: HumanDuration::seconds(20),
            retries: 2,
            concurrency: 8,
            waiting: 64,
            reply_limit: ByteSize::mebibytes(1),
            cache: ByteSize::mebibytes(16),
            breaker_failures: 5,
            breaker_pause: HumanDuration::seconds(10),
            trace_payloads: false,
        }
    }
}

/// One of [`LanguageModel::prices`].
#[derive(Debug, Clone, PartialEq)]
struct Price {
    model: String,
    read: f64,
    written: f64,
}

impl FromStr for Price {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = "is not `model: read/written`, such as `small: 0.15/0.60`";
        let price = |text: &str| {
            let price = text.trim().parse::<f64>().ok();
            price.filter(|price| price.is_finite() && *price >= 0.0)
        };
        let (model, prices) = text.rsplit_once(':').ok_or(form)?;
        let (read, written) = prices.split_once('/').ok_or(form)?;
        Ok(Self {
            model: model.trim().to_owned(),
            read: price(read).ok_or(form)?,
            written: price(written).ok_or(form)?,
        })
    }
}

impl LanguageModel {
    /// The endpoint, if there is one.
    pub fn endpoint(&self) -> Option<Options> {
        let mut options = Options::new(self.base_url.clone()?, "");
        options.key = self.key.as_ref().map(|key| key.expose().into());
        options.agents = Agents {
            constructor: self.agent(&self.constructor),
            retriever: self.agent(&self.retriever),
            judge: self.agent(&self.judge),
            refresher: self.agent(&self.refresher),
            consolidator: self.agent(&self.consolidator),
            answer: self.agent(&self.answer),
        };
        options.connect_timeout = self.connect_timeout.get();
        options.idle_timeout = self.idle_timeout.get();
        options.retries = self.retries;
        options.concurrency = self.concurrency;
        options.waiting = self.waiting;
        options.reply_limit = self.reply_limit.as_usize();
        options.cache = self.cache.as_usize() as u64;
        options.breaker = Breaker {
            failures: self.breaker_failures,
            pause: self.breaker_pause.get(),
            ..Breaker::default()
        };
        options.budget = Limits {
            calls: self.calls_per_day,
            tokens: self.tokens_per_day,
            micros: self.money_per_day.map(|money| (money * 1e6) as u64),
        };
        options.trace_payloads = self.trace_payloads;
        Some(options)
    }

    fn agent(&self, agent: &AgentModel) -> AgentOptions {
        let model = self.name(agent).unwrap_or_default();
        let price = self.price(model);
        AgentOptions {
            temperature: Some(agent.temperature),
            max_tokens: agent.max_tokens,
            timeout: agent.timeout.get(),
            price_in: price.as_ref().map_or(0.0, |price| price.read),
            price_out: price.as_ref().map_or(0.0, |price| price.written),
            ..AgentOptions::with_model(model)
        }
    }

    fn name<'a>(&'a self, agent: &'a AgentModel) -> Option<&'a str> {
        agent.model.as_deref().or(self.model.as_deref())
    }

    fn price(&self, model: &str) -> Option<Price> {
        let mut prices = self.prices.iter().filter_map(|price| price.parse().ok());
        prices.find(|price: &Price| price.model == model)
    }

    fn agents(&self) -> [(&'static str, &AgentModel); 6] {
        [
            ("constructor", &self.constructor),
            ("retriever", &self.retriever),
            ("judge", &self.judge),
            ("refresher", &self.refresher),
            ("consolidator", &self.consolidator),
            ("answer", &self.answer),
        ]
    }

    fn problems_of(&self, agent: &AgentModel) -> Vec<Problem> {
        let is_used = self.base_url.is_some();
        let name = self.name(agent);
        let is_priced = name.is_none_or(|name| self.price(name).is_some());
        let rules = [
            (
                "model",
                is_used && name.is_none(),
                "is needed, here or as `language_model.model`, with `language_model.base_url`",
            ),
            (
                "model",
                self.money_per_day.is_some() && !is_priced,
                "needs its price in `language_model.prices`: `money_per_day` could not hold",
            ),
            (
                "temperature",
                !(0.0..=2.0).contains(&agent.temperature),
                "must be from 0 to 2",
            ),
            ("max_tokens", agent.max_tokens == 0, "must be at least 1"),
            (
                "timeout",
                agent.timeout.get().is_zero(),
                "must be longer than nothing",
            ),
        ];
        broken(rules)
    }
}

fn broken<const N: usize>(rules: [(&'static str, bool, &'static str); N]) -> Vec<Problem> {
    let broken = rules.into_iter().filter(|rule| rule.1);
    broken
        .map(|(key, _, message)| Problem::new(key, message))
        .collect()
}

impl Validate for LanguageModel {
    fn problems(&self) -> Vec<Problem> {
        let url = self.base_url.as_deref();
        let is_http = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        let is_negative = |money: f64| !money.is_finite() || money < 0.0;
        let mut problems = broken([
            (
                "base_url",
                url.is_some_and(|url| !is_http(url)),
                "must be `https://host/v1`, or `http://…` on a network that is private",
            ),
            (
                "base_url",
                url.is_none() && (self.key.is_some() || self.model.is_some()),
                "is needed: without it no model is ever called",
            ),
            (
                "money_per_day",
                self.money_per_day.is_some_and(is_negative),
                "must not be negative",
            ),
            ("concurrency", self.concurrency == 0, "must be at least 1"),
            (
                "breaker_failures",
                self.breaker_failures == 0,
                "must be at least 1",
            ),
            (
                "reply_limit",
                self.reply_limit < ByteSize::kibibytes(1),
                "must be at least 1KiB",
            ),
        ]);
        for (index, price) in self.prices.iter().enumerate() {
            if let Err(message) = price.parse::<Price>() {
                problems.push(Problem::new(format!("prices[{index}]"), message));
            }
        }
        for (name, agent) in self.agents() {
            let found = self.problems_of(agent).into_iter();
            problems.extend(found.map(|problem| problem.under(name)));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use memfleet_ports::language_model::Agent;

    use super::*;

    fn hosted() -> LanguageModel {
        LanguageModel {
            base_url: Some("https://models.test/v1".to_owned()),
            key: Some("sk-1".to_owned().into()),
            model: Some("small".to_owned()),
            prices: vec!["small: 0.15/0.60".to_owned(), "large:8b: 2/8".to_owned()],
            ..LanguageModel::default()
        }
    }

    fn keys(config: &LanguageModel) -> Vec<String> {
        let problems = config.problems().into_iter();
        problems.map(|problem| problem.key).collect()
    }

    #[test]
    fn without_an_address_there_is_no_endpoint() {
        assert!(LanguageModel::default().endpoint().is_none());
        assert_eq!(keys(&LanguageModel::default()), Vec::<String>::new());
    }

    #[test]
    fn an_agent_has_its_own_model_or_that_of_all_with_its_price() {
        let mut config = hosted();
        config.judge.model = Some("large:8b".to_owned());
        config.judge.timeout = HumanDuration::seconds(3);
        config.money_per_day = Some(1.5);
        assert_eq!(keys(&config), Vec::<String>::new());
        let options = config.endpoint().unwrap();
        let judge = options.agents.of(Agent::Judge);
        assert_eq!(
            (judge.model.as_str(), judge.price_in, judge.price_out),
            ("large:8b", 2.0, 8.0)
        );
        assert_eq!(judge.timeout, Duration::from_secs(3));
        let answer = options.agents.of(Agent::Answer);
        assert_eq!((answer.model.as_str(), answer.price_out), ("small", 0.6));
        assert_eq!(options.budget.micros, Some(1_500_000));
    }

    #[test]
    fn the_defaults_are_those_of_the_adapter() {
        let mut config = hosted();
        config.prices.clear();
        let ours = config.endpoint().unwrap();
        let theirs = Options::new("https://models.test/v1", "small");
        assert_eq!(ours.agents, theirs.agents);
        assert_eq!(ours.breaker, theirs.breaker);
        let numbers = |options: &Options| {
            let times = (options.connect_timeout, options.idle_timeout);
            let counts = (options.retries, options.concurrency, options.waiting);
            (times, counts, options.reply_limit, options.cache)
        };
        assert_eq!(numbers(&ours), numbers(&theirs));
    }

    #[test]
    fn every_problem_is_named() {
        let mut config = hosted();
        config.base_url = Some("models.test".to_owned());
        config.prices.push("small 1/2".to_owned());
        config.money_per_day = Some(1.0);
        config.answer.model = Some("unpriced".to_owned());
        config.answer.temperature = 3.0;
        config.concurrency = 0;
        let expected = [
            "base_url",
            "concurrency",
            "prices[2]",
            "answer.model",
            "answer.temperature",
        ];
        assert_eq!(keys(&config), expected);
    }

    #[test]
    fn a_model_without_an_address_and_an_address_without_a_model_are_problems() {
        let mut config = hosted();
        config.base_url = None;
        assert_eq!(keys(&config), ["base_url"]);
        let mut config = hosted();
        config.model = None;
        assert_eq!(keys(&config).len(), 6);
    }
}
