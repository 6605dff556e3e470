//! What the last fragments of a narrative are about together (Amory section 3.1, momentum-aware consolidation): they are grouped to subplots,
//! and the headline gives way to a broader one where it covers them no more. Words are never made up: a headline is one of a fragment's.

use std::collections::BTreeMap;

use super::vector::{Sum, Vector};

/// How alike a fragment and a subplot are at least, as cosine with its centre: below it opens another one.
const SAME_SUBPLOT: f32 = 0.6;
/// How much nearer the centre of all another headline is than the narrative's own before it takes its place.
const BROADER: f32 = 0.1;

/// A fragment as it is consolidated.
#[derive(Debug, Clone)]
pub struct Member {
    /// The vector of its opening turn, where known.
    pub vector: Option<Vector>,
    /// Where it stands already.
    pub subplot: Option<u32>,
}

/// What fragments come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plot {
    /// The subplot of each member. Those that had one keep it.
    pub subplots: Vec<u32>,
    /// Of each new subplot the member whose headline it has: the most central one.
    pub headlines: Vec<usize>,
    /// The member whose headline covers all better than the narrative's own.
    pub broader: Option<usize>,
}

/// Groups fragments, in the order in which they were said. `known` is how many subplots the narrative has, `headline` the vector of the
/// turn that its headline is words of.
pub fn plot(members: &[Member], known: u32, headline: Option<&Vector>) -> Plot {
    let (subplots, centres) = grouped(members, known);
    let new = centres.iter().filter(|(number, _)| **number >= known);
    let headlines = new.map(|(number, centre)| {
        let within = members.iter().zip(&subplots).enumerate();
        let within = within.filter(|(_, (_, subplot))| *subplot == number);
        central(within.map(|(place, (member, _))| (place, member)), centre)
    });
    Plot {
        headlines: headlines
            .map(|central| central.map_or(0, |it| it.0))
            .collect(),
        broader: broader(members, headline),
        subplots,
    }
}

/// The subplot of each member, and the centre of each.
fn grouped(members: &[Member], known: u32) -> (Vec<u32>, BTreeMap<u32, Sum>) {
    let mut centres: BTreeMap<u32, Sum> = BTreeMap::new();
    for member in members {
        if let (Some(subplot), Some(vector)) = (member.subplot, &member.vector) {
            centres.entry(subplot).or_default().add(vector);
        }
    }
    let (mut next, mut subplots) = (known, Vec::with_capacity(members.len()));
    for member in members {
        let subplot = match (member.subplot, &member.vector) {
            (Some(subplot), _) => subplot,
            // Without a vector nothing tells it from what was said before.
            (None, None) => subplots.last().copied().unwrap_or(next),
            (None, Some(vector)) => {
                let subplot = nearest(&centres, vector).unwrap_or(next);
                centres.entry(subplot).or_default().add(vector);
                subplot
            }
        };
        if subplot == next {
            centres.entry(subplot).or_default();
            next += 1;
        }
        subplots.push(subplot);
    }
    (subplots, centres)
}

fn nearest(centres: &BTreeMap<u32, Sum>, vector: &Vector) -> Option<u32> {
    let scored = centres.iter().map(|(id, it)| (it.cosine(vector), *id));
    // Equally near ones in a fixed order: what is done twice is the same.
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    best.filter(|(likeness, _)| *likeness >= SAME_SUBPLOT)
        .map(|(_, id)| id)
}

/// The one nearest to a centre, the first of equals, and how near it is.
fn central<'m>(
    members: impl Iterator<Item = (usize, &'m Member)>,
    centre: &Sum,
) -> Option<(usize, f32)> {
    let scored = members.map(|(place, member)| {
        let vector = member.vector.as_ref();
        (place, vector.map_or(-1.0, |vector| centre.cosine(vector)))
    });
    scored.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)))
}

fn broader(members: &[Member], headline: Option<&Vector>) -> Option<usize> {
    let headline = headline?;
    let mut centre = Sum::default();
    for vector in members.iter().filter_map(|it| it.vector.as_ref()) {
        centre.add(vector);
    }
    let (place, likeness) = central(members.iter().enumerate(), &centre)?;
    (likeness - centre.cosine(headline) > BROADER).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(vector: [i8; 3], subplot: Option<u32>) -> Member {
        Member {
            vector: Vector::new(&vector),
            subplot,
        }
    }

    #[test]
    fn alike_fragments_are_one_subplot_in_the_words_of_the_most_central() {
        let members = [
            member([90, 30, 0], None),
            member([0, 0, 100], None),
            member([100, 0, 0], None),
            member([90, -30, 0], None),
        ];
        let plot = plot(&members, 0, None);
        assert_eq!(plot.subplots, [0, 1, 0, 0]);
        assert_eq!(plot.headlines, [2, 1]);
    }

    #[test]
    fn what_has_a_subplot_keeps_it_and_others_join_it() {
        let members = [
            member([100, 0, 0], Some(3)),
            member([95, 5, 0], None),
            member([0, 100, 0], None),
        ];
        let plot = plot(&members, 5, None);
        assert_eq!(plot.subplots, [3, 3, 5]);
        assert_eq!(plot.headlines, [2]);
    }

    #[test]
    fn without_vectors_it_is_one_subplot() {
        let blind = Member {
            vector: None,
            subplot: None,
        };
        let plot = plot(&[blind.clone(), blind], 0, None);
        assert_eq!((plot.subplots, plot.headlines), (vec![0, 0], vec![0]));
    }

    #[test]
    fn a_headline_stays_while_it_covers_all() {
        let members = [member([100, 0, 0], None), member([90, 30, 0], None)];
        let own = Vector::new(&[100, 0, 0]);
        assert_eq!(plot(&members, 0, own.as_ref()).broader, None);
        let drifted = [
            member([0, 100, 0], None),
            member([0, 90, 10], None),
            member([0, 95, 0], None),
        ];
        assert_eq!(plot(&drifted, 0, own.as_ref()).broader, Some(0));
    }

    #[test]
    fn nothing_comes_to_nothing() {
        assert_eq!(plot(&[], 2, None), Plot::default());
    }
}
