//! The server, and what its errors mean.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use memfleet_ports::store::{Result, StoreError};
use neo4rs::{ConfigBuilder, Query, Row, Txn};
use tokio::sync::OnceCell;

use crate::schema;

/// Rows that are fetched at a time.
const FETCH: usize = 1_000;

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// `bolt://host:7687` in the clear, `bolt+s://host:7687` encrypted.
    pub url: String,
    /// Who asks.
    pub user: String,
    /// With which password.
    pub password: String,
    /// The database.
    pub database: String,
    /// File with the certificates of the authority that signed the server's, in PEM; absent: those of the operating system.
    pub ca: Option<PathBuf>,
    /// Connections at most.
    pub connections: usize,
    /// What a question or a write may take, the driver's retries included.
    pub timeout: Duration,
}

/// A graph in Neo4j. The server need not be there yet.
pub struct Neo4jGraph {
    graph: neo4rs::Graph,
    timeout: Duration,
    prepared: OnceCell<()>,
}

/// Why something was not done.
pub(crate) type Outcome<T> = std::result::Result<T, neo4rs::Error>;

impl Neo4jGraph {
    /// Nothing is asked of the server yet.
    pub fn new(options: &Options) -> Result<Self> {
        let mut config = ConfigBuilder::default()
            .uri(&options.url)
            .user(&options.user)
            .password(&options.password)
            .db(options.database.as_str())
            .fetch_size(FETCH)
            .max_connections(options.connections)
            .connection_timeout(options.timeout);
        if let Some(ca) = &options.ca {
            config = config.with_client_certificate(ca);
        }
        let graph = config.build().and_then(neo4rs::Graph::connect);
        Ok(Self {
            graph: graph.map_err(unavailable)?,
            timeout: options.timeout,
            prepared: OnceCell::new(),
        })
    }

    /// What was asked, within the deadline. The driver's futures are large.
    pub(crate) fn within<'a, T: Send + 'a>(
        &'a self,
        what: &'a str,
        asked: impl Future<Output = Outcome<T>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let asked = async {
                let prepared = self
                    .prepared
                    .get_or_try_init(|| schema::prepare(&self.graph));
                prepared.await?;
                asked.await
            };
            match tokio::time::timeout(self.timeout, asked).await {
                Ok(answer) => answer.map_err(unavailable),
                Err(_) => {
                    let waited = self.timeout;
                    let cause = format!("Neo4j: no answer to {what} within {waited:?}");
                    Err(StoreError::Unavailable(cause))
                }
            }
        })
    }

    /// All rows of a question.
    pub(crate) async fn rows(&self, query: Query) -> Outcome<Vec<Row>> {
        let mut stream = self.graph.execute_read(query).await?;
        let mut rows = Vec::new();
        while let Some(row) = stream.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// What is done in it is done as a whole, by `commit`.
    pub(crate) async fn begin(&self) -> Outcome<Txn> {
        self.graph.start_txn().await
    }
}

/// The graph is not the truth: whatever is wrong with its server, nothing is lost.
fn unavailable(error: neo4rs::Error) -> StoreError {
    StoreError::Unavailable(match error {
        // What the server says may quote values; its code does not.
        neo4rs::Error::Neo4j(error) => format!("Neo4j: {}", error.code()),
        other => format!("Neo4j: {other}"),
    })
}
