//! Scores from which on a statement belongs to a topic, by action and model.

use memfleet_domain::topic::TopicAction;

/// Thresholds of one embedding model.
struct TopicThresholds {
    model: &'static str,
    leave_out: f32,
    keep: f32,
    tag: f32,
}

/// Thresholds, chosen by `memfleet bench topics` on the training sets: twelve topics of 40
/// statements inside and 60 outside, 20 of these near (docs/topics.md). To leave out: at least 95 %
/// of what belongs to a topic is found. To keep and to tag: about 87 % of what is found belongs to
/// it. The thresholds of the English model are chosen on English alone.
const THRESHOLDS: [TopicThresholds; 2] = [
    TopicThresholds {
        model: "multilingual-e5-small",
        leave_out: 0.12,
        keep: 0.40,
        tag: 0.40,
    },
    TopicThresholds {
        model: "all-MiniLM-L6-v2",
        leave_out: 0.07,
        keep: 0.35,
        tag: 0.35,
    },
];

/// Thresholds of models that were not measured.
const OTHERS: TopicThresholds = TopicThresholds {
    model: "",
    leave_out: 0.08,
    keep: 0.40,
    tag: 0.40,
};

/// Least score, by [`TopicMatcher::scores`](super::TopicMatcher::scores), of a statement on which a
/// topic acts.
pub fn topic_threshold(model: &str, action: TopicAction) -> f32 {
    let mut measured = THRESHOLDS.iter();
    let of_model = measured.find(|it| it.model == model).unwrap_or(&OTHERS);
    match action {
        TopicAction::LeaveOut => of_model.leave_out,
        TopicAction::Keep => of_model.keep,
        TopicAction::Tag => of_model.tag,
    }
}
