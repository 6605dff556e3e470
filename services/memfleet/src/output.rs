//! What commands print: one JSON document (or JSON lines) with `--json`, else text for people. Styles are used on a
//! terminal only, and never when `NO_COLOR` is set.

mod derived;
mod palette;
mod progress;
mod table;
mod text;
mod turns;

use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

pub use derived::{change_json, change_lines, derivation_json, held, listed, said, span};
pub use palette::Palette;
pub use progress::Progress;
pub use table::{Align, table};
pub use text::{count, exact, printable, shortened, size, time};
pub use turns::{neighbour, renamed, turn_json, turn_lines};

/// Standard output, in the form that the caller asked for.
pub struct Output {
    writer: Box<dyn Write>,
    json: bool,
    palette: Palette,
}

impl Output {
    /// Writes to standard output.
    pub fn stdout(json: bool) -> Self {
        let styled = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Self {
            writer: Box::new(BufWriter::new(io::stdout())),
            json,
            palette: Palette::new(styled),
        }
    }

    /// Whether the caller asked for JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// One answer, in the form that was asked for. Both are made only when they are printed.
    pub fn answer<T: Serialize>(
        &mut self,
        json: impl FnOnce() -> T,
        human: impl FnOnce(Palette) -> String,
    ) -> io::Result<()> {
        if self.json {
            self.json(&json())
        } else {
            self.text(human(self.palette).trim_end_matches('\n'))
        }
    }

    /// A list: JSON lines, or one text for all; an empty one says so to people.
    pub fn list<T, J: Serialize>(
        &mut self,
        items: &[T],
        json: impl Fn(&T) -> J,
        human: impl FnOnce(Palette) -> String,
    ) -> io::Result<()> {
        if !self.json {
            let text = if items.is_empty() {
                self.palette.dim("none")
            } else {
                human(self.palette)
            };
            return self.text(text.trim_end_matches('\n'));
        }
        items.iter().try_for_each(|item| self.json(&json(item)))
    }

    /// One line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.writer, value)?;
        self.writer.write_all(b"\n")
    }

    /// A text and a line break, as it is; nothing when it is empty.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        writeln!(self.writer, "{text}")
    }

    /// Part of a text, as it is.
    pub fn piece(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())
    }

    /// The styles of this output.
    pub fn palette(&self) -> Palette {
        self.palette
    }

    /// Makes what was printed visible now; streams do it line by line.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
