//! Expressions and what they mean on Wednesday, 14 June 2023.

use super::*;
use chrono::{NaiveDate, TimeZone};
use proptest::prelude::*;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2023, 6, 14, 12, 0, 0).unwrap()
}

fn found(language: Language, text: &str) -> Vec<String> {
    references(text, now(), Tz::UTC, language)
        .into_iter()
        .map(|reference| {
            let last = reference.end.date_naive().pred_opt().unwrap();
            let first = reference.start.date_naive();
            let mark = if reference.recurring { "~" } else { "" };
            if first == last {
                format!("{mark}{first}")
            } else {
                format!("{mark}{first}..{last}")
            }
        })
        .collect()
}

fn english(text: &str) -> Vec<String> {
    found(Language::English, text)
}

#[test]
fn written_and_numeric_dates_are_days() {
    for text in [
        "on 8 May 2023",
        "May 8, 2023?",
        "May 8th, 2023",
        "the 8th of May 2023",
        "05/08/2023",
        "2023-05-08",
        "2023-05-08T13:56",
        "2023年5月8日",
        "2023년 5월 8일에",
        "2023/5/8",
    ] {
        assert_eq!(english(text), ["2023-05-08"], "{text}");
    }
    assert_eq!(english("13/05/2023"), ["2023-05-13"]);
    assert_eq!(
        found(Language::German, "am 08.05.2023 und am 8. Mai 2023"),
        ["2023-05-08", "2023-05-08"]
    );
}

#[test]
fn months_seasons_and_years_are_their_width() {
    assert_eq!(english("in May 2023"), ["2023-05-01..2023-05-31"]);
    assert_eq!(english("in 2022"), ["2022-01-01..2022-12-31"]);
    assert_eq!(
        english("summer of 2022, winter 2021"),
        ["2022-06-01..2022-08-31", "2021-12-01..2022-02-28"]
    );
    assert_eq!(english("2022-11"), ["2022-11-01..2022-11-30"]);
}

#[test]
fn without_a_year_the_most_recent_one_is_meant_and_flagged() {
    assert_eq!(
        english("in August and in May"),
        ["~2022-08-01..2022-08-31", "~2023-05-01..2023-05-31"]
    );
    assert_eq!(english("on June 14"), ["~2023-06-14"]);
    assert_eq!(english("15 June"), ["~2022-06-15"]);
    assert_eq!(english("Feb 29"), ["~2020-02-29"]);
    assert_eq!(english("on Friday"), ["~2023-06-09"]);
    assert_eq!(english("5月8日"), ["~2023-05-08"]);
}

#[test]
fn relative_expressions_are_counted_from_now() {
    assert_eq!(english("yesterday morning"), ["2023-06-13"]);
    assert_eq!(english("last week"), ["2023-06-05..2023-06-11"]);
    assert_eq!(english("two weeks ago"), ["2023-05-29..2023-06-04"]);
    assert_eq!(english("3 days ago"), ["2023-06-11"]);
    assert_eq!(
        english("last Friday, next Friday, this Friday"),
        ["2023-06-09", "2023-06-16", "2023-06-16"]
    );
    assert_eq!(english("next month"), ["2023-07-01..2023-07-31"]);
    assert_eq!(english("this morning"), ["2023-06-14"]);
    assert_eq!(english("last year"), ["2022-01-01..2022-12-31"]);
    assert_eq!(english("in the past 3 days"), ["2023-06-11..2023-06-14"]);
    assert_eq!(
        english("last summer; last weekend"),
        ["2022-06-01..2022-08-31", "2023-06-10..2023-06-11"]
    );
    assert_eq!(english("in 3 days"), ["2023-06-17"]);
    assert_eq!(
        english("a couple of months ago"),
        ["2023-04-01..2023-04-30"]
    );
}

#[test]
fn everyday_words_and_other_numbers_are_no_dates() {
    for text in [
        "May I march on?",
        "we may spring a leak, they sat",
        "it cost $2000 and 2,000 people came",
        "version 1.2.3 at 10:30",
        "for two weeks",
        "30 February 2023",
        "999999999 years ago",
        "+1 2023-4567",
    ] {
        assert_eq!(english(text), [""; 0], "{text}");
    }
}

#[test]
fn other_languages_say_the_same() {
    let last_week = ["2023-06-05..2023-06-11"];
    assert_eq!(found(Language::German, "letzte Woche"), last_week);
    assert_eq!(found(Language::French, "la semaine dernière"), last_week);
    assert_eq!(found(Language::Spanish, "la semana pasada"), last_week);
    assert_eq!(found(Language::Italian, "la settimana scorsa"), last_week);
    assert_eq!(found(Language::Portuguese, "na semana passada"), last_week);
    assert_eq!(found(Language::Dutch, "vorige week"), last_week);
    assert_eq!(found(Language::Other, "先週何をした"), last_week);
    let three_days_ago = ["2023-06-11"];
    assert_eq!(found(Language::German, "vor drei Tagen"), three_days_ago);
    assert_eq!(found(Language::French, "il y a 3 jours"), three_days_ago);
    assert_eq!(found(Language::Spanish, "hace tres días"), three_days_ago);
    assert_eq!(found(Language::Italian, "tre giorni fa"), three_days_ago);
    assert_eq!(found(Language::Portuguese, "há três dias"), three_days_ago);
    assert_eq!(found(Language::Dutch, "drie dagen geleden"), three_days_ago);
    assert_eq!(found(Language::Other, "3天前"), three_days_ago);
    let day = ["2023-05-08"];
    assert_eq!(found(Language::French, "le 8 mai 2023"), day);
    assert_eq!(found(Language::Spanish, "el 8 de mayo de 2023"), day);
    assert_eq!(found(Language::Portuguese, "8 de maio de 2023"), day);
    assert_eq!(found(Language::French, "aujourd’hui"), ["2023-06-14"]);
}

#[test]
fn days_begin_at_local_midnight() {
    let late = Utc.with_ymd_and_hms(2023, 6, 14, 23, 0, 0).unwrap();
    let reference = &references("today", late, chrono_tz::Asia::Tokyo, Language::English)[0];
    assert_eq!(
        reference.start,
        Utc.with_ymd_and_hms(2023, 6, 14, 15, 0, 0).unwrap()
    );
    let skipped = &references(
        "2018-11-04",
        late,
        chrono_tz::America::Sao_Paulo,
        Language::English,
    )[0];
    assert_eq!(
        skipped.start,
        Utc.with_ymd_and_hms(2018, 11, 4, 3, 0, 0).unwrap()
    );
}

#[test]
fn counting_includes_durations_and_vague_words() {
    assert_eq!(
        count_expressions(
            "Recently, on 8 May, I ran for two weeks.",
            Language::English
        ),
        3
    );
    assert_eq!(count_expressions("You may go.", Language::English), 0);
}

fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[0-9]{1,10}",
        "[-/.,年月日 ]",
        prop::sample::select(vec![
            "last", "next", "May", "8th", "of", "in", "ago", "weeks", "Friday", "summer", "days",
            "vor", "Jahren", "il y a", "two",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_gives_ordered_intervals_with_valid_spans(text in words(), pick in 0usize..Language::ALL.len(), day in -300_000i64..900_000) {
        let now = NaiveDate::from_ymd_opt(2023, 6, 14).unwrap().and_hms_opt(1, 2, 3).unwrap().and_utc() + chrono::TimeDelta::days(day);
        let language = Language::ALL[pick];
        let found = references(&text, now, chrono_tz::Pacific::Apia, language);
        prop_assert!(found.len() <= count_expressions(&text, language));
        let mut end = 0;
        for reference in found {
            prop_assert!(reference.start < reference.end);
            prop_assert!(reference.span.start >= end && text.get(reference.span.clone()).is_some());
            if reference.recurring {
                prop_assert!(reference.start <= now);
            }
            end = reference.span.end;
        }
    }

    #[test]
    fn every_iso_day_is_read_back(year in 1000i32..=9999, ordinal in 1u32..=365) {
        let day = NaiveDate::from_yo_opt(year, ordinal).unwrap();
        for language in Language::ALL {
            prop_assert_eq!(found(language, &day.to_string()), [day.to_string()]);
        }
    }
}
