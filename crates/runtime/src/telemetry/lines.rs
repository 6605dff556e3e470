//! How log lines look. Each ends with the trace that it belongs to, where there is one: so that logs lead to traces.

use memfleet_trace::trace_id;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{self, FmtContext, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::Format;

/// Writes lines of a format.
pub(super) fn lines<S, W>(
    format: Format,
    colours: bool,
    writer: W,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_writer(writer);
    match format {
        Format::Human => layer
            .with_ansi(colours)
            .map_event_format(|line| Traced(line.with_ansi(colours), format))
            .boxed(),
        Format::Json => layer
            .with_ansi(false)
            .json()
            .flatten_event(true)
            .map_event_format(|line| Traced(line, format))
            .boxed(),
    }
}

/// A line with the trace at its end.
struct Traced<L>(L, Format);

impl<S, N, L> FormatEvent<S, N> for Traced<L>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    L: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let Self(format, kind) = self;
        let Some(trace) = trace_id() else {
            return format.format_event(context, writer, event);
        };
        let mut line = String::new();
        format.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end();
        match kind {
            Format::Human => writeln!(writer, "{line} trace_id={trace}"),
            Format::Json => {
                let object = line.strip_suffix('}').unwrap_or(line);
                writeln!(writer, "{object},\"trace_id\":\"{trace}\"}}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, colours: bool, work: impl FnOnce()) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let subscriber = tracing_subscriber::registry()
            .with(lines(format, colours, move || writer.clone()))
            .with(tracing_opentelemetry::layer().with_tracer(tracer));
        tracing::subscriber::with_default(subscriber, work);
        String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
    }

    fn storing() {
        tracing::info!(turns = 3, "stored");
    }

    const CALLERS: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn storing_for_a_caller() {
        let span = tracing::info_span!("call", request_id = "r-7");
        memfleet_trace::follow(&span, CALLERS);
        span.in_scope(|| tracing::info_span!("remember").in_scope(storing));
    }

    #[test]
    fn json_lines_carry_fields_by_name() {
        let line = logged(Format::Json, true, storing);
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&line["message"], &line["turns"]),
            (&"stored".into(), &3.into())
        );
        assert_eq!(line.get("trace_id"), None, "there is none");
    }

    #[test]
    fn human_lines_have_colours_only_when_asked() {
        for work in [storing, storing_for_a_caller] {
            assert!(!logged(Format::Human, false, work).contains('\u{1b}'));
            assert!(logged(Format::Human, true, work).contains('\u{1b}'));
        }
    }

    #[test]
    fn lines_name_the_request_and_the_trace_that_they_belong_to() {
        let line = logged(Format::Json, false, storing_for_a_caller);
        assert_eq!(line.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["trace_id"], CALLERS[3..35]);
        assert_eq!(line["spans"][0]["request_id"], "r-7");
        let line = logged(Format::Human, false, storing_for_a_caller);
        let trace = &CALLERS[3..35];
        assert!(
            line.ends_with(&format!("stored turns=3 trace_id={trace}\n")),
            "{line}"
        );
        assert!(
            line.contains("call{request_id=\"r-7\"}:remember: "),
            "{line}"
        );
    }
}
