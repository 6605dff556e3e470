use memfleet_domain::ids::DerivationId;

use super::*;

fn turn(number: u8) -> TurnId {
    TurnId::from_bytes([number; 16])
}

fn scored(number: u8, score: f32, relevance: Option<f32>) -> ScoredTurn {
    let own = SignalScore {
        signal: "own".into(),
        value: 1.0,
        contribution: score,
    };
    let ranked = Ranked {
        space: 0,
        turn: turn(number),
        score,
        passage: (0, 1),
        clues: Clues::unknown(),
        signals: vec![own],
        fact: None::<DerivationId>,
        episode: None,
        sources: Vec::new(),
        stages: Vec::new(),
    };
    ScoredTurn { ranked, relevance }
}

fn ranking(turns: Vec<ScoredTurn>, unembedded: &[u8]) -> ModelRanking {
    let unembedded = unembedded.iter().map(|&number| (0, turn(number)));
    ModelRanking {
        turns,
        unembedded: unembedded.collect(),
    }
}

fn told(fused: &[ScoredTurn]) -> Vec<(TurnId, f32, Option<f32>)> {
    let told = fused.iter();
    told.map(|it| (it.ranked.turn, it.ranked.score, it.relevance))
        .collect()
}

#[test]
fn scores_are_means_and_what_a_ranking_lacks_has_its_last_score() {
    let first = vec![scored(1, 4.0, Some(0.625)), scored(2, 1.0, Some(0.25))];
    let second = vec![scored(3, 10.0, Some(0.625)), scored(1, 1.0, Some(0.25))];
    let fused = fuse(ranking(first, &[]), ranking(second, &[]));
    // Two thirds of 1 and a third of 10, of 4 and 1, of 1 and 1.
    let expected = [
        (turn(3), 4.0, Some(0.375)),
        (turn(1), 3.0, Some(0.5)),
        (turn(2), 1.0, Some(0.25)),
    ];
    assert_eq!(told(&fused), expected);
    let ranks = fused.iter().map(|it| it.ranked.stages.first());
    let ranks: Vec<_> = ranks.map(|stage| stage.map(|stage| stage.rank)).collect();
    assert_eq!(ranks, [Some(1), Some(2), None]);
}

#[test]
fn contributions_add_up_to_the_score() {
    let first = vec![scored(1, 4.0, Some(0.5)), scored(2, 2.0, None)];
    let second = vec![scored(3, 9.0, Some(0.75)), scored(1, 1.0, Some(0.25))];
    for turn in fuse(ranking(first, &[]), ranking(second, &[2])) {
        let Ranked { score, signals, .. } = turn.ranked;
        let sum: f32 = signals.iter().map(|it| it.contribution).sum();
        assert!((sum - score).abs() < 1e-6, "{signals:?}");
    }
}

/// The ranking of the other model may name the turn, by its neighbours' vectors.
#[test]
fn a_turn_without_vectors_of_one_model_has_the_score_of_the_other() {
    let first = vec![
        scored(1, 4.0, Some(0.5)),
        scored(2, 2.0, Some(0.25)),
        scored(3, 1.0, None),
    ];
    let second = vec![scored(3, 3.0, Some(0.75)), scored(1, 1.0, Some(0.125))];
    let fused = fuse(ranking(first, &[3]), ranking(second, &[1, 2]));
    let expected = [
        (turn(1), 4.0, Some(0.5)),
        (turn(3), 3.0, Some(0.75)),
        (turn(2), 2.0, Some(0.25)),
    ];
    assert_eq!(told(&fused), expected);
}

#[test]
fn the_best_turns_are_the_same_however_deep_the_rankings_are() {
    let list = |seed: u32| -> Vec<ScoredTurn> {
        let mut order: Vec<u32> = (0..240).collect();
        order.sort_by_key(|number| number.wrapping_mul(2_654_435_761).rotate_left(seed));
        let turns = order.into_iter().zip(0_u8..);
        let score = |place: u8| f32::from(240 - place) / 10.0;
        turns
            .map(|(number, place)| scored(number as u8, score(place), Some(score(place) / 100.0)))
            .collect()
    };
    let at_depth = |depth: usize| {
        let mut rankings = [1, 9].map(list);
        rankings.iter_mut().for_each(|turns| turns.truncate(depth));
        let [first, second] = rankings.map(|turns| ranking(turns, &[]));
        told(&fuse(first, second))
    };
    let deep = at_depth(240);
    let shallow = at_depth(FUSED_TURNS);
    assert_eq!(shallow[..], deep[..shallow.len()]);
    assert_eq!(deep.len(), 240);
}

#[test]
fn equal_scores_keep_the_order_of_the_first_ranking() {
    let turns = |order: [u8; 3]| order.map(|number| scored(number, 1.0, Some(0.5))).to_vec();
    let fused = fuse(
        ranking(turns([3, 1, 2]), &[]),
        ranking(turns([2, 1, 3]), &[]),
    );
    let order = fused.iter().map(|it| it.ranked.turn);
    assert_eq!(order.collect::<Vec<_>>(), [3, 1, 2].map(turn));
}
