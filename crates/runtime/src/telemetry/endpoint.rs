//! The HTTP endpoint for whoever watches a process: metrics for Prometheus (one recorder a process), liveness and readiness.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::server::entrance::address;
use crate::server::places::Places;

/// Upper bounds of the latency histograms, in seconds: 1 ms to 30 s, finest where recall answers.
const LATENCY_BUCKETS: [f64; 14] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// How often samples that were recorded but not scraped are folded together.
const UPKEEP: Duration = Duration::from_secs(5);

/// Connections at once, and of them those of one address. More would take file descriptors from callers.
const MAX_CONNECTIONS: usize = 64;
const MAX_CONNECTIONS_PER_ADDRESS: usize = 32;

/// Time in which the head of a request must arrive.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// Time after which a connection is closed, whatever it is at.
const CONNECTION_TIME: Duration = Duration::from_secs(30);

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where metrics are served: an address, or nowhere (`off`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAddress {
    /// Metrics are recorded and not served.
    Off,
    /// Served on this address; port 0 takes a free one.
    At(SocketAddr),
}

impl Default for MetricsAddress {
    fn default() -> Self {
        Self::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 9464)))
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::At(address) => address.fmt(formatter),
        }
    }
}

/// The text is neither an address nor `off`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither \"off\" nor an address with its port, such as \"127.0.0.1:9464\"")]
pub struct ParseError(String);

impl FromStr for MetricsAddress {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "off" => Ok(Self::Off),
            _ => text
                .parse()
                .map(Self::At)
                .map_err(|_| ParseError(text.to_owned())),
        }
    }
}

impl Serialize for MetricsAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MetricsAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Makes this process record metrics; later calls give the same recorder.
pub fn install_recorder() -> Result<PrometheusHandle, Error> {
    static RECORDER: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = recorder.as_ref() {
        return Ok(handle.clone());
    }
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCY_BUCKETS)
        .expect("the buckets are not empty");
    let handle = builder.install_recorder().map_err(|_| Error::Recorder)?;
    Ok(recorder.insert(handle).clone())
}

/// Whether a process takes calls: from the end of its start until it is asked to stop.
#[derive(Clone, Default)]
pub struct Readiness {
    started: Arc<AtomicBool>,
    stop: CancellationToken,
    degraded: Arc<OnceLock<Box<dyn Fn() -> String + Send + Sync>>>,
    awaited: Arc<Mutex<&'static str>>,
}

impl fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Readiness({})", self.is_ready())
    }
}

impl Readiness {
    /// Not ready yet; never again once `stop` is cancelled.
    pub fn until(stop: CancellationToken) -> Self {
        Self {
            stop,
            ..Self::default()
        }
    }

    /// Notes that the start is done.
    pub fn started(&self) {
        self.started.store(true, Ordering::Release);
    }

    /// Notes what the start waits for, in words that name no server.
    pub fn waits_for(&self, awaited: &'static str) {
        *self.awaited.lock().unwrap_or_else(PoisonError::into_inner) = awaited;
    }

    fn awaited(&self) -> String {
        let awaited = *self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        match awaited {
            "" => String::new(),
            _ if self.started.load(Ordering::Acquire) => String::new(),
            awaited => format!(": waiting for {awaited}"),
        }
    }

    /// What a process that takes calls says of parts that do not work: it is asked again each time. The first one stays.
    pub fn explain(&self, degraded: impl Fn() -> String + Send + Sync + 'static) {
        let _first = self.degraded.set(Box::new(degraded));
    }

    fn degraded(&self) -> String {
        self.degraded.get().map(|tell| tell()).unwrap_or_default()
    }

    fn is_ready(&self) -> bool {
        self.started.load(Ordering::Acquire) && !self.stop.is_cancelled()
    }
}

/// A bound endpoint that is not served yet.
#[derive(Debug)]
pub struct MetricsEndpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsEndpoint {
    /// Takes the address.
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        let failed = |error| Error::Bind(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The bound address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers `GET /metrics`, `/livez` (200 while the process runs) and `/readyz` (200 while it takes calls, else 503; it names
    /// the parts that do not work, and what a start waits for) until `stop`.
    pub async fn serve(
        self,
        recorder: PrometheusHandle,
        readiness: Readiness,
        stop: CancellationToken,
    ) -> std::io::Result<()> {
        let upkeep = stop.run_until_cancelled_owned(keep_up(recorder.clone()));
        let render = move || async move {
            (
                [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
                recorder.render(),
            )
        };
        let ready = move || async move {
            if readiness.is_ready() {
                (StatusCode::OK, format!("ready{}", readiness.degraded()))
            } else {
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("not ready{}", readiness.awaited()),
                )
            }
        };
        let routes = Router::new()
            .route("/metrics", get(render))
            .route("/livez", get(async || "alive"))
            .route("/readyz", get(ready));
        // A scrape that is cut off is repeated: nothing here is worth waiting for.
        tokio::select! {
            () = answer(self.listener, routes) => Ok(()),
            _ = upkeep => Ok(()),
        }
    }
}

/// Answers one request a connection, within bounds of connections and time.
async fn answer(listener: TcpListener, routes: Router) {
    let places = Places::of_each(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "no connection for metrics");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.take(&address(Some(peer.ip())), None) else {
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // Its other end sees whether the answer came.
            let _ended = tokio::time::timeout(CONNECTION_TIME, served).await;
            drop(place);
        });
    }
}

async fn keep_up(recorder: PrometheusHandle) {
    let mut interval = tokio::time::interval(UPKEEP);
    loop {
        interval.tick().await;
        recorder.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn an_address_is_off_or_a_socket_address() {
        for text in ["off", "127.0.0.1:9464", "[::1]:0"] {
            assert_eq!(text.parse::<MetricsAddress>().unwrap().to_string(), text);
        }
        assert!("9464".parse::<MetricsAddress>().is_err());
    }

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn what_was_recorded_is_served_and_how_the_process_is() {
        let recorder = install_recorder().unwrap();
        metrics::counter!("memfleet_endpoint_test_total").increment(7);
        let endpoint = MetricsEndpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .await
            .unwrap();
        let address = endpoint.address();
        let (stop, stopping) = (CancellationToken::new(), CancellationToken::new());
        let readiness = Readiness::until(stopping.clone());
        let serving = tokio::spawn(endpoint.serve(recorder, readiness.clone(), stop.clone()));
        let metrics = get(address, "/metrics").await;
        assert!(
            metrics.contains("memfleet_endpoint_test_total 7"),
            "{metrics}"
        );
        let status = async |path| get(address, path).await[9..12].to_owned();
        assert_eq!(
            [status("/livez").await, status("/readyz").await],
            ["200", "503"]
        );
        readiness.waits_for("`memfleet migrate`");
        let waiting = get(address, "/readyz").await;
        assert!(
            waiting.ends_with("not ready: waiting for `memfleet migrate`"),
            "{waiting}"
        );
        readiness.started();
        assert_eq!(status("/readyz").await, "200");
        stopping.cancel();
        assert_eq!(
            [status("/livez").await, status("/readyz").await],
            ["200", "503"]
        );
        stop.cancel();
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn silent_connections_take_a_bounded_number_of_places() {
        let recorder = install_recorder().unwrap();
        let endpoint = MetricsEndpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .await
            .unwrap();
        let address = endpoint.address();
        let stop = CancellationToken::new();
        let readiness = Readiness::until(stop.clone());
        let serving = tokio::spawn(endpoint.serve(recorder, readiness, stop.clone()));
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS_PER_ADDRESS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut one_more = TcpStream::connect(address).await.unwrap();
        let closed = one_more.read(&mut [0; 1]).await;
        assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
        // Silent ones are closed, and their places free again.
        let mut first = silent.swap_remove(0);
        let wait = Duration::from_secs(20);
        let read = tokio::time::timeout(wait, first.read(&mut [0; 512])).await;
        assert!(read.is_ok(), "a silent connection is closed");
        drop(silent);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(get(address, "/livez").await[9..12], *"200");
        stop.cancel();
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_taken_address_says_which_and_what_to_change() {
        let first = MetricsEndpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .await
            .unwrap();
        let error = MetricsEndpoint::bind(first.address())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&first.address().to_string())
                && error.contains("telemetry.metrics_address"),
            "{error}"
        );
    }
}
