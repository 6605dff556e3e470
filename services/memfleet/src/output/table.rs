//! Aligned columns without borders, right for terminals and for `awk`.

use comfy_table::{CellAlignment, Table, presets};

use super::Palette;
use super::text::printable;

/// Side on which a column's texts begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The rows under their headings, columns two spaces apart. Empty when there is no row.
pub fn table<const N: usize>(
    palette: Palette,
    columns: [(&str, Align); N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_header(columns.map(|(heading, _)| heading));
    for row in rows {
        table.add_row(row.map(|cell| printable(&cell).replace(['\n', '\t'], " ")));
    }
    for (column, (_, align)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let lines = lines.enumerate().map(|(number, line)| match number {
        0 => palette.strong(&line),
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_is_seen_not_by_bytes() {
        let rows = [
            ["ada".to_owned(), "7".to_owned()],
            ["アダ".to_owned(), "1234".to_owned()],
        ];
        let text = table(
            Palette::default(),
            [("SPACE", Align::Left), ("TURNS", Align::Right)],
            rows,
        );
        assert_eq!(text, "SPACE  TURNS\nada        7\nアダ    1234");
    }

    #[test]
    fn a_table_without_rows_is_nothing() {
        assert_eq!(table(Palette::default(), [("SPACE", Align::Left)], []), "");
    }

    #[test]
    fn a_cell_cannot_break_the_table_or_the_terminal() {
        let text = table(
            Palette::default(),
            [("NAME", Align::Left)],
            [["a\nb\u{1b}[2J".to_owned()]],
        );
        assert_eq!(text, "NAME\na b\u{fffd}[2J");
    }
}
