//! The layer around handlers that are a few lines each, on paused time.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use prost::Message;
use prost_types::{
    FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
};
use tower::{ServiceExt, service_fn};

use super::super::entrance::Entrance;
use super::*;
use crate::config::{ByteSize, HumanDuration};

fn methods() -> Methods {
    let method = |name: &str, stream| MethodDescriptorProto {
        name: Some(name.to_owned()),
        server_streaming: Some(stream),
        ..MethodDescriptorProto::default()
    };
    let service = ServiceDescriptorProto {
        name: Some("Memory".to_owned()),
        method: vec![
            method("Recall", false),
            method("Watch", true),
            method("Counted", false),
        ],
        ..ServiceDescriptorProto::default()
    };
    let file = FileDescriptorProto {
        package: Some("test".to_owned()),
        service: vec![service],
        ..FileDescriptorProto::default()
    };
    Methods::from_descriptors(&[&FileDescriptorSet { file: vec![file] }.encode_to_vec()]).unwrap()
}

fn shelled<H, F>(
    shell: &Shell,
    handler: H,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ use<H, F>
where
    H: Fn(Request<Body>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    shell.layer(service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    }))
}

fn shell(options: &Options) -> (Shell, CancellationToken) {
    let stop = CancellationToken::new();
    (Shell::new(options, methods(), stop.clone()), stop)
}

fn call(method: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let builder = Request::builder().uri(format!("http://node/test.Memory/{method}"));
    headers
        .iter()
        .fold(builder, |builder, (name, value)| {
            builder.header(*name, *value)
        })
        .body(Body::empty())
        .unwrap()
}

fn status(answer: &Response<Body>) -> Status {
    Status::from_header_map(answer.headers()).unwrap()
}

/// Says who calls, as the headers `tenant` and `key` have it.
fn authenticated(request: &Request<Body>) -> Result<(), Status> {
    let named = |name: &str| request.headers().get(name).map(|it| it.to_str().unwrap());
    let tenant = named("tenant").unwrap_or("acme");
    let entrance = request.extensions().get::<Entrance>().unwrap();
    entrance.enter(tenant, named("key"))
}

async fn forever(request: Request<Body>) -> Response<Body> {
    match authenticated(&request) {
        Ok(()) => std::future::pending().await,
        Err(refusal) => refusal.into_http(),
    }
}

/// A stream that never sends.
struct Silent;

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Pending
    }
}

async fn silent(request: Request<Body>) -> Response<Body> {
    match authenticated(&request) {
        Ok(()) => Response::new(Body::new(Silent)),
        Err(refusal) => refusal.into_http(),
    }
}

async fn trailers(answer: Response<Body>) -> Status {
    let mut body = Box::pin(answer.into_body());
    let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context))
        .await
        .unwrap()
        .unwrap();
    Status::from_header_map(frame.trailers_ref().unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_callers_deadline_or_at_the_default() {
    let (shell, _stop) = shell(&Options::default());
    for (headers, at_most) in [(&[("grpc-timeout", "2S")][..], 2), (&[][..], 30)] {
        let begun = Instant::now();
        let answer = shelled(&shell, forever)
            .oneshot(call("Recall", headers))
            .await
            .unwrap();
        assert_eq!(status(&answer).code(), Code::DeadlineExceeded);
        assert!(
            begun.elapsed() <= Duration::from_millis(at_most * 1000 + 1),
            "{:?}",
            begun.elapsed()
        );
        assert!(
            begun.elapsed() >= Duration::from_millis(at_most * 1000 - 50),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_too_many_is_refused_at_once_and_says_when_to_try_again() {
    let (shell, _stop) = shell(&Options {
        max_concurrent_calls: 1,
        ..Options::default()
    });
    let service = shelled(&shell, forever);
    let mut first = std::pin::pin!(service.clone().oneshot(call("Recall", &[])));
    assert!(futures::poll!(&mut first).is_pending());
    let refused = status(&service.clone().oneshot(call("Recall", &[])).await.unwrap());
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(
        refused.get_details_error_info().unwrap().reason,
        "OVERLOADED"
    );
    assert!(
        refused
            .get_details_retry_info()
            .unwrap()
            .retry_delay
            .is_some()
    );
}

/// The next frame of an answer.
async fn next(body: &mut Body) -> Option<Result<Frame<Bytes>, Status>> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// One message after the other, without an end.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"message")))))
    }
}

async fn endless(request: Request<Body>) -> Response<Body> {
    match authenticated(&request) {
        Ok(()) => Response::new(Body::new(Endless)),
        Err(refusal) => refusal.into_http(),
    }
}

fn one_stream() -> Options {
    Options {
        max_concurrent_streams: 1,
        stream_idle: HumanDuration::seconds(60),
        ..Options::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_keeps_its_place_until_it_ends() {
    let (shell, _stop) = shell(&one_stream());
    let service = shelled(&shell, silent);
    let open = || service.clone().oneshot(call("Watch", &[]));
    let first = open().await.unwrap();
    let refused = status(&open().await.unwrap());
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let message = refused.message();
    assert!(
        message.contains("`server.max_concurrent_streams` is 1"),
        "{message}"
    );
    let single = shelled(&shell, async |_| Status::ok("").into_http());
    let answer = single.oneshot(call("Recall", &[])).await.unwrap();
    assert_eq!(status(&answer).code(), Code::Ok, "single calls go on");
    drop(first);
    assert!(Status::from_header_map(open().await.unwrap().headers()).is_none());
}

#[tokio::test]
async fn a_stream_that_is_refused_ends_with_its_headers() {
    let (shell, _stop) = shell(&one_stream());
    let service = shelled(&shell, async |_| Status::not_found("no space").into_http());
    let answer = service.oneshot(call("Watch", &[])).await.unwrap();
    assert_eq!(status(&answer).code(), Code::NotFound);
    assert!(answer.body().is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_for_the_server_is_not_idle() {
    let (shell, _stop) = shell(&one_stream());
    let answer = shelled(&shell, silent).oneshot(call("Watch", &[])).await;
    let mut body = answer.unwrap().into_body();
    let waiting = tokio::time::timeout(Duration::from_hours(1), next(&mut body)).await;
    assert!(waiting.is_err(), "it waits still");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_reads_gives_its_place_back() {
    let (shell, _stop) = shell(&one_stream());
    let service = shelled(&shell, endless);
    let open = || service.clone().oneshot(call("Watch", &[]));
    let mut body = open().await.unwrap().into_body();
    for _ in 0..3 {
        assert!(next(&mut body).await.unwrap().unwrap().is_data());
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(71)).await;
    let another = open().await.unwrap();
    assert!(Status::from_header_map(another.headers()).is_none());
    let end = next(&mut body).await.unwrap().unwrap();
    let status = Status::from_header_map(end.trailers_ref().unwrap()).unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "STREAM_IDLE");
    assert!(status.get_details_retry_info().is_some());
    assert!(next(&mut body).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_sends_nothing_more_is_waited_for_no_longer_than_the_bound() {
    let (shell, _stop) = shell(&one_stream());
    let service = shelled(&shell, async |request: Request<Body>| {
        let mut body = request.into_body();
        let error = next(&mut body).await.unwrap().unwrap_err();
        error.into_http()
    });
    let mut request = call("Watch", &[]);
    *request.body_mut() = Body::new(Silent);
    let begun = Instant::now();
    let status = status(&service.oneshot(request).await.unwrap());
    assert_eq!(begun.elapsed().as_secs(), 60);
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "STREAM_IDLE");
    assert!(status.get_details_retry_info().is_some());
}

#[tokio::test(start_paused = true)]
async fn refusals_in_a_loop_come_at_their_pace_and_hold_no_place_meanwhile() {
    let (shell, _stop) = shell(&Options {
        max_refusals_per_second: 100,
        max_concurrent_calls: 1,
        ..Options::default()
    });
    let service = shelled(&shell, async |request: Request<Body>| {
        match authenticated(&request) {
            Ok(()) => Status::not_found("no space").into_http(),
            Err(refusal) => refusal.into_http(),
        }
    });
    let refused = |tenant: &'static str| {
        let service = service.clone();
        async move {
            let answer = service.oneshot(call("Recall", &[("tenant", tenant)])).await;
            assert_eq!(status(&answer.unwrap()).code(), Code::NotFound);
        }
    };
    let begun = Instant::now();
    for _ in 0..200 {
        refused("acme").await;
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    for _ in 0..100 {
        refused("acme").await;
    }
    let passed = begun.elapsed();
    assert!(passed >= Duration::from_secs(1), "{passed:?}");
    let mut held = std::pin::pin!(refused("acme"));
    assert!(futures::poll!(&mut held).is_pending());
    // The one place is free, and another caller is at once refused.
    refused("beta").await;
    assert_eq!(begun.elapsed(), passed);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_credential_leave_places_to_others_of_its_tenant_and_to_other_tenants() {
    let (shell, _stop) = shell(&Options {
        max_concurrent_calls: 16,
        ..Options::default()
    });
    let service = shelled(&shell, forever);
    let open = |tenant, key| {
        let request = call("Recall", &[("tenant", tenant), ("key", key)]);
        Box::pin(service.clone().oneshot(request))
    };
    let mut calls: Vec<_> = (0..4).map(|_| open("acme", "greedy")).collect();
    calls.push(open("acme", "modest"));
    calls.push(open("beta", "other"));
    for call in &mut calls {
        assert!(futures::poll!(call).is_pending());
    }
    let refused = status(&open("acme", "greedy").await.unwrap());
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(
        refused.message().starts_with("this credential"),
        "{refused}"
    );
    drop(calls);
    assert!(futures::poll!(open("acme", "greedy")).is_pending());
}

#[tokio::test(start_paused = true)]
async fn streams_of_one_credential_leave_places_to_others() {
    let (shell, _stop) = shell(&Options {
        max_concurrent_streams: 16,
        ..Options::default()
    });
    let service = shelled(&shell, silent);
    let open = async |tenant, key| {
        let request = call("Watch", &[("tenant", tenant), ("key", key)]);
        let answer = service.clone().oneshot(request).await.unwrap();
        match Status::from_header_map(answer.headers()) {
            None => Ok(answer),
            Some(refusal) => Err(refusal),
        }
    };
    let mut streams = Vec::new();
    for key in ["greedy"; 4].into_iter().chain(["modest"]) {
        streams.push(open("acme", key).await.unwrap());
    }
    let refused = open("acme", "greedy").await.unwrap_err();
    assert!(
        refused.message().starts_with("this credential"),
        "{refused}"
    );
    streams.push(open("beta", "other").await.unwrap());
    drop(streams);
    open("acme", "greedy").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_ends_its_call_within_seconds_and_one_that_comes_slowly_may() {
    let (shell, _stop) = shell(&Options::default());
    let service = shelled(&shell, async |request: Request<Body>| {
        authenticated(&request).unwrap();
        let mut body = request.into_body();
        loop {
            match next(&mut body).await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.into_http(),
                None => return Status::ok("").into_http(),
            }
        }
    });
    let asked = |body: Body| {
        let mut request = call("Recall", &[("grpc-timeout", "9M")]);
        *request.body_mut() = body;
        service.clone().oneshot(request)
    };
    let begun = Instant::now();
    let refusal = status(&asked(Body::new(Silent)).await.unwrap());
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(refusal.code(), Code::DeadlineExceeded);
    assert_eq!(
        refusal.get_details_error_info().unwrap().reason,
        "REQUEST_STALLED"
    );
    let begun = Instant::now();
    let refusal = status(&asked(Body::new(Paced::of(1_000, 1))).await.unwrap());
    assert_eq!(refusal.code(), Code::DeadlineExceeded, "a byte a second");
    assert!(begun.elapsed().as_secs() <= 11);
    let slow = status(&asked(Body::new(Paced::of(60, 100 << 10))).await.unwrap());
    assert_eq!(slow.code(), Code::Ok, "a minute of 100 KiB a second");
}

#[tokio::test(start_paused = true)]
async fn requests_in_progress_have_so_many_bytes_and_others_are_refused_as_they_arrive() {
    let (shell, _stop) = shell(&Options {
        max_request_memory: ByteSize::mebibytes(4),
        max_request_size: ByteSize::mebibytes(1),
        max_prompt_size: ByteSize::mebibytes(1),
        ..Options::default()
    });
    let service = shelled(&shell, async |request: Request<Body>| {
        authenticated(&request).unwrap();
        let mut body = request.into_body();
        loop {
            match next(&mut body).await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.into_http(),
                None => std::future::pending().await,
            }
        }
    });
    let asked = |tenant: &str, kibibytes: u32| {
        let mut request = call("Recall", &[("tenant", tenant), ("key", tenant)]);
        *request.body_mut() = Body::new(Paced::of(kibibytes / 128, 128 << 10));
        tokio::spawn(service.clone().oneshot(request))
    };
    let first = asked("acme", 1_024);
    tokio::time::sleep(Duration::from_secs(9)).await;
    let refused = asked("acme", 1_024);
    let other = asked("beta", 512);
    let refusal = status(&refused.await.unwrap().unwrap());
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert!(
        refusal.message().contains("`server.max_request_memory`"),
        "{refusal}"
    );
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(!first.is_finished() && !other.is_finished());
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let again = asked("acme", 512);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(!again.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_bring_more_than_the_memory_of_requests_has() {
    let (shell, _stop) = shell(&Options {
        max_request_memory: ByteSize::mebibytes(4),
        max_request_size: ByteSize::mebibytes(1),
        max_prompt_size: ByteSize::mebibytes(1),
        ..Options::default()
    });
    let service = shelled(&shell, async |request: Request<Body>| {
        authenticated(&request).unwrap();
        let mut body = request.into_body();
        while let Some(frame) = next(&mut body).await {
            if let Err(error) = frame {
                return error.into_http();
            }
        }
        Status::ok("").into_http()
    });
    let mut request = call("Watch", &[]);
    *request.body_mut() = Body::new(Paced::of(40, 256 << 10));
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(status(&answer).code(), Code::Ok);
}

#[tokio::test]
async fn request_that_is_broken_off_is_cancelled_and_no_fault_of_the_server() {
    let (shell, _stop) = shell(&Options::default());
    let service = shelled(&shell, async |request| {
        let mut body = request.into_body();
        match next(&mut body).await {
            Some(Err(error)) => error.into_http(),
            _ => Status::ok("").into_http(),
        }
    });
    let mut request = call("Watch", &[]);
    *request.body_mut() = Body::new(Broken);
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(status(&answer).code(), Code::Cancelled);
}

/// A body whose connection is reset.
struct Broken;

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(Some(Err(Status::internal("h2 protocol error: reset"))))
    }
}

/// A body of so many frames of so many bytes, one a second.
struct Paced {
    frames: u32,
    size: usize,
    pause: Pin<Box<tokio::time::Sleep>>,
}

impl Paced {
    fn of(frames: u32, size: usize) -> Self {
        Self {
            frames,
            size,
            pause: Box::pin(tokio::time::sleep(Duration::from_secs(1))),
        }
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.frames == 0 {
            return Poll::Ready(None);
        }
        std::task::ready!(self.pause.as_mut().poll(context));
        self.frames -= 1;
        let due = Instant::now() + Duration::from_secs(1);
        self.pause.as_mut().reset(due);
        Poll::Ready(Some(Ok(Frame::data(vec![0; self.size].into()))))
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_of_one_address_leave_places_for_those_of_others() {
    let (shell, _stop) = shell(&Options {
        max_unauthenticated_calls: 8,
        ..Options::default()
    });
    let service = shelled(&shell, async |_| Response::new(Body::new(Silent)));
    let watch = |address: &str| {
        let mut request = call("Watch", &[]);
        let peer = Peer(address.parse().unwrap());
        request.extensions_mut().insert(peer);
        service.clone().oneshot(request)
    };
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(watch("2001:db8::1").await.unwrap());
    }
    let refused = status(&watch("2001:db8::2").await.unwrap());
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().starts_with("this address"), "{refused}");
    let other = watch("192.0.2.1").await.unwrap();
    assert!(Status::from_header_map(other.headers()).is_none());
    drop(open);
    let again = watch("2001:db8::2").await.unwrap();
    assert!(Status::from_header_map(again.headers()).is_none());
}

#[tokio::test]
async fn probes_are_admitted_under_load() {
    let (shell, _stop) = shell(&Options {
        max_concurrent_calls: 0,
        ..Options::default()
    });
    let service = shelled(&shell, async |_| Status::ok("").into_http());
    let probe = Request::builder()
        .uri("http://node/grpc.health.v1.Health/Check")
        .body(Body::empty())
        .unwrap();
    assert_eq!(
        status(&service.oneshot(probe).await.unwrap()).code(),
        Code::Ok
    );
}

#[tokio::test]
async fn handlers_see_id_and_deadline_and_the_answer_carries_the_id() {
    let (shell, _stop) = shell(&Options::default());
    let service = shelled(&shell, async |request: Request<Body>| {
        let id = request.extensions().get::<RequestId>().unwrap();
        let deadline = request.extensions().get::<Deadline>().unwrap();
        assert!(deadline.remaining() > Duration::from_secs(4));
        let known = memfleet_trace::remaining().unwrap();
        assert!(known > Duration::from_secs(4), "adapters know it, too");
        Status::ok(&*id.0).into_http()
    });
    let answer = service
        .oneshot(call(
            "Recall",
            &[("x-request-id", "abc"), ("grpc-timeout", "5S")],
        ))
        .await
        .unwrap();
    assert_eq!(status(&answer).message(), "abc");
    assert_eq!(answer.headers()["x-request-id"], "abc");
}

#[tokio::test]
async fn a_panic_becomes_an_internal_error_of_its_call_only() {
    let (shell, _stop) = shell(&Options::default());
    let service = shelled(&shell, async |request: Request<Body>| {
        assert!(request.headers().contains_key("calm"), "on purpose");
        Status::ok("").into_http()
    });
    let answer = service.clone().oneshot(call("Recall", &[])).await.unwrap();
    assert_eq!(status(&answer).code(), Code::Internal);
    let answer = service
        .oneshot(call("Recall", &[("calm", "yes")]))
        .await
        .unwrap();
    assert_eq!(status(&answer).code(), Code::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_stream_outlives_the_default_deadline_and_ends_after_the_stop_order() {
    let (shell, stop) = shell(&Options {
        stream_drain: HumanDuration::seconds(3),
        ..Options::default()
    });
    let answer = shelled(&shell, silent)
        .oneshot(call("Watch", &[]))
        .await
        .unwrap();
    let ended = tokio::spawn(trailers(answer));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!ended.is_finished());
    stop.cancel();
    let begun = Instant::now();
    let status = ended.await.unwrap();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.get_details_error_info().unwrap().reason, "STOPPING");
    assert_eq!(begun.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_on_after_the_stop_order_ends_before_the_process_is_cut_off() {
    let (shell, stop) = shell(&Options {
        call_drain: HumanDuration::seconds(3),
        ..Options::default()
    });
    let service = shelled(&shell, async |_| std::future::pending().await);
    let begun = Instant::now();
    let stopped = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (answer, ()) = tokio::join!(service.oneshot(call("Recall", &[])), stopped);
    let status = status(&answer.unwrap());
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.get_details_error_info().unwrap().reason, "STOPPING");
    assert_eq!(begun.elapsed().as_secs(), 4);
}

#[tokio::test]
async fn calls_are_counted_by_method_and_code() {
    // No other test calls this method: they all count in one recorder.
    let recorder = crate::telemetry::install_recorder().unwrap();
    let (shell, _stop) = shell(&Options::default());
    let service = shelled(&shell, async |_| {
        Status::not_found("no such turn").into_http()
    });
    drop(service.oneshot(call("Counted", &[])).await.unwrap());
    let rendered = recorder.render();
    let counted = "memfleet_grpc_calls_total{method=\"test.Memory/Counted\",code=\"NOT_FOUND\"} 1";
    assert!(rendered.contains(counted), "{rendered}");
    assert!(
        rendered.contains(
            "memfleet_grpc_call_duration_seconds_bucket{method=\"test.Memory/Counted\",le="
        ),
        "{rendered}"
    );
}
