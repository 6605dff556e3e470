//! Triplets as a drawing: for Graphviz, or as a picture with one entity in the middle and the others around it.

use std::f64::consts::TAU;
use std::fmt::Write;

use memfleet_domain::graph::Entity;
use memfleet_domain::ids::EntityId;
use memfleet_ports::knowledge_api::Edge;

use super::predicate;

/// Points between neighbours on the circle, so that their names have room.
const ROOM: f64 = 70.0;
/// Points from the middle to the circle at least.
const RADIUS: f64 = 180.0;
/// Points around the circle.
const MARGIN: f64 = 120.0;
/// Characters of a name that are shown.
const SHOWN: usize = 32;

/// A directed graph in the language of Graphviz.
pub fn dot<'e>(edges: impl Iterator<Item = &'e Edge>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = String::from("digraph memory {\n");
    for edge in edges {
        let (from, to) = (quoted(&edge.subject.name), quoted(&edge.object.name));
        let _ = writeln!(
            text,
            "  {from} -> {to} [label={}];",
            quoted(&predicate(edge))
        );
    }
    text.push('}');
    text
}

/// A picture that a browser shows. Without a middle all entities stand on the circle.
pub fn svg<'e>(edges: impl Iterator<Item = &'e Edge>, centre: Option<&Entity>) -> String {
    let edges: Vec<&Edge> = edges.collect();
    let mut around: Vec<&Entity> = Vec::new();
    for entity in edges.iter().flat_map(|edge| [&edge.subject, &edge.object]) {
        let is_centre = centre.is_some_and(|centre| centre.id == entity.id);
        if !is_centre && !around.iter().any(|it| it.id == entity.id) {
            around.push(entity);
        }
    }
    let radius = (around.len() as f64 * ROOM / TAU).max(RADIUS);
    let middle = radius + MARGIN;
    let place = |id: EntityId| match around.iter().position(|it| it.id == id) {
        Some(place) => {
            let angle = TAU * place as f64 / around.len() as f64;
            (middle + radius * angle.cos(), middle + radius * angle.sin())
        }
        None => (middle, middle),
    };
    let size = 2.0 * middle;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size:.0} {size:.0}\" font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n\
         <defs><marker id=\"to\" viewBox=\"0 0 8 8\" refX=\"22\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#888\"/></marker></defs>\n"
    );
    for edge in &edges {
        let ((x, y), (to_x, to_y)) = (place(edge.subject.id), place(edge.object.id));
        let _ = writeln!(
            text,
            "<line x1=\"{x:.0}\" y1=\"{y:.0}\" x2=\"{to_x:.0}\" y2=\"{to_y:.0}\" stroke=\"#bbb\" marker-end=\"url(#to)\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" fill=\"#666\" font-size=\"11\">{}</text>",
            f64::midpoint(x, to_x),
            f64::midpoint(y, to_y),
            escaped(&predicate(edge))
        );
    }
    for entity in around.iter().copied().chain(centre) {
        let (x, y) = place(entity.id);
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"14\" fill=\"#dbe9f6\" stroke=\"#5b8bb5\"/><text x=\"{x:.0}\" y=\"{:.0}\">{}</text>",
            y + 30.0,
            escaped(&entity.name)
        );
    }
    text.push_str("</svg>");
    text
}

/// What was said is text here, whatever it looks like. What XML does not allow at all is left out.
fn escaped(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.retain(|character| !character.is_control());
    let pairs = [
        ('&', "&amp;"),
        ('<', "&lt;"),
        ('>', "&gt;"),
        ('"', "&quot;"),
    ];
    pairs
        .into_iter()
        .fold(shown, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use memfleet_domain::graph::Triplet;
    use memfleet_domain::ids::DerivationId;
    use memfleet_domain::time::TimeRange;

    use super::*;

    fn edge(subject: &str, object: &str) -> Edge {
        let [subject, object] = [subject, object].map(|name| Entity::new(name, name));
        let triplet = Triplet {
            fact: DerivationId::from_bytes([1; 16]),
            subject: subject.id,
            predicate: "know".into(),
            object: object.id,
            negated: true,
            valid: TimeRange::default(),
            confidence: 1.0,
            turns: Vec::new(),
        };
        Edge {
            subject,
            object,
            triplet,
        }
    }

    #[test]
    fn a_graph_for_graphviz_quotes_what_was_said() {
        let edges = [edge("Ada", "the \"A\\B\"")];
        let expected =
            "digraph memory {\n  \"Ada\" -> \"the \\\"A\\\\B\\\"\" [label=\"not know\"];\n}";
        assert_eq!(dot(edges.iter()), expected);
    }

    #[test]
    fn a_picture_has_each_entity_once_and_runs_nothing_that_was_said() {
        let edges = [edge("Ada", "<script>&"), edge("Ben", "Ada")];
        let picture = svg(edges.iter(), Some(&edges[0].subject));
        assert_eq!(picture.matches("<circle").count(), 3);
        assert_eq!(picture.matches("<line").count(), 2);
        assert!(picture.contains("&lt;script&gt;&amp;"), "{picture}");
        assert!(!picture.contains("<script"), "{picture}");
    }
}
