//! "Did you mean": the known key nearest to one that is not known.

use serde_json::Value;

use super::layers::join;
use super::view::leaves;

/// Below this likeness (Jaro-Winkler, 0 to 1) a suggestion confuses more than it helps.
const ALIKE: f64 = 0.85;

/// How to mend the unknown `key`: the nearest key of its section, else of any section, else the keys that there are.
pub(super) fn for_unknown(key: &str, defaults: &Value) -> String {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let siblings: Vec<String> = section_of(defaults, section)
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(|sibling| join(section, sibling))
        .collect();
    let anywhere: Vec<String> = leaves(defaults).into_iter().map(|(leaf, _)| leaf).collect();
    nearest(name, &siblings)
        .or_else(|| nearest(name, &anywhere))
        .map_or_else(
            || format!("known here: {}", siblings.join(", ")),
            |known| format!("did you mean `{known}`?"),
        )
}

fn section_of<'a>(
    defaults: &'a Value,
    section: &str,
) -> Option<&'a serde_json::Map<String, Value>> {
    let mut value = defaults;
    for name in section.split('.').filter(|name| !name.is_empty()) {
        value = value.get(name)?;
    }
    value.as_object()
}

fn nearest(name: &str, candidates: &[String]) -> Option<String> {
    let likeness = |candidate: &str| {
        let last = candidate.rsplit('.').next().unwrap_or(candidate);
        strsim::jaro_winkler(name, last)
    };
    candidates
        .iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate.clone())
}
