//! What somebody said in a file, as turns that a node accepts: within the limits of a request, with an id and a reference
//! for everything that is not text. Everything that comes from files goes through here.

use memfleet_domain::Timestamp;
use memfleet_domain::ids::{ExternalId, NameError, SessionId, Speaker};
use memfleet_domain::turn::{Content, Media, Metadata, Role, Trust};
use memfleet_ports::memory::NewTurn;
use memfleet_rpc::limits;

/// One utterance of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The session it belongs to.
    pub session: String,
    /// Its id there, the same on a second run.
    pub id: String,
    /// Who, as prompts will show it.
    pub speaker: String,
    /// In which part.
    pub role: Role,
    /// The words.
    pub text: String,
    /// What came with them.
    pub media: Vec<Media>,
    /// When; absent where the file does not say.
    pub time: Option<Timestamp>,
}

impl Said {
    /// One turn, or several where it is too long for one; none where it says nothing.
    pub fn turns(self) -> Result<Vec<NewTurn>, NameError> {
        let session = SessionId::new(fitted(&self.session, SessionId::LIMIT))?;
        let speaker = Speaker::new(fitted(&self.speaker, Speaker::LIMIT))?;
        let texts = pieces(&self.text);
        let media = self.media.chunks(limits::MEDIA).collect::<Vec<_>>();
        let mut turns = Vec::with_capacity(1);
        for number in 0..texts.len().max(media.len()) {
            let content = Content {
                text: texts.get(number).copied().unwrap_or_default().to_owned(),
                media: media.get(number).copied().unwrap_or_default().to_vec(),
            };
            if content.searchable_text().trim().is_empty() {
                continue;
            }
            let id = match number {
                0 => self.id.clone(),
                number => format!("{}/{}", self.id, number + 1),
            };
            turns.push(NewTurn {
                session: session.clone(),
                external_id: Some(ExternalId::new(fitted(&id, ExternalId::LIMIT))?),
                speaker: speaker.clone(),
                role: self.role,
                content,
                event_time: self.time,
                metadata: Metadata::new(),
                trust: Trust::of_role(self.role),
                replaces: None,
            });
        }
        Ok(turns)
    }
}

/// Hexadecimal digits of the hash that ends a name which was too long.
const HASH: usize = 16;

/// A text as a name of at most `limit` bytes, more than 16: control characters become spaces, and
/// what is too long is cut and ends in its hash, so that two names stay two.
pub fn fitted(text: &str, limit: usize) -> String {
    let name = text.replace(char::is_control, " ");
    if name.len() <= limit {
        return name;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{}-{}", cut(&name, limit - HASH - 1), &hash[..HASH])
}

/// A reference to something that is not text. What is inlined, or too long for a reference, is named by its hash; what
/// the file only describes, by the hash of the description.
pub fn media(uri: &str, mime_type: &str, caption: &str) -> Media {
    let inline = uri
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once([';', ',']));
    let mime_type = inline.map_or(mime_type, |(mime_type, _)| mime_type);
    let hashed = |bytes: &str| format!("urn:blake3:{}", blake3::hash(bytes.as_bytes()).to_hex());
    let uri = match uri {
        blank if blank.trim().is_empty() => hashed(caption),
        long if inline.is_some() || long.len() > limits::URI => hashed(long),
        uri => uri.to_owned(),
    };
    Media {
        uri,
        mime_type: cut(mime_type, limits::MIME_TYPE).to_owned(),
        caption: cut(caption, limits::CAPTION).to_owned(),
    }
}

/// At most `limit` bytes of a text, whole characters.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// A text in pieces that turns can hold, cut after a line break, else after white space, else anywhere.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > limits::TEXT {
        let head = cut(rest, limits::TEXT);
        let end = head
            .rfind('\n')
            .or_else(|| head.rfind(' '))
            .map_or(head.len(), |at| at + 1);
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(text: &str, captions: &[&str]) -> Said {
        Said {
            session: "s".to_owned(),
            id: "1".to_owned(),
            speaker: "Noor".to_owned(),
            role: Role::User,
            text: text.to_owned(),
            media: captions
                .iter()
                .map(|caption| media("", "", caption))
                .collect(),
            time: None,
        }
    }

    #[test]
    fn what_says_nothing_is_no_turn_and_a_caption_says_something() {
        assert_eq!(said(" \n", &[]).turns(), Ok(vec![]));
        assert_eq!(said("", &[" "]).turns(), Ok(vec![]));
        assert_eq!(said("", &["a red kite"]).turns().unwrap().len(), 1);
    }

    #[test]
    fn what_is_too_long_becomes_several_turns_with_ids_of_their_own() {
        let text = "word ".repeat(limits::TEXT / 4);
        let turns = said(&text, &["a red kite"; 20]).turns().unwrap();
        let ids = turns
            .iter()
            .map(|turn| turn.external_id.as_ref().unwrap().as_str());
        assert_eq!(ids.collect::<Vec<_>>(), ["1", "1/2"]);
        let pictures = turns.iter().map(|turn| turn.content.media.len());
        assert_eq!(pictures.collect::<Vec<_>>(), [16, 4]);
    }

    #[test]
    fn inlined_and_missing_media_become_a_stable_reference() {
        let inlined = media("data:image/png;base64,AAAA", "", "an image");
        assert!(inlined.uri.starts_with("urn:blake3:"));
        assert_eq!(inlined.mime_type, "image/png");
        assert_eq!(media("", "", "a red kite"), media(" ", "", "a red kite"));
        assert_eq!(
            media("https://a.example/b.png", "", "").uri,
            "https://a.example/b.png"
        );
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_stays_its_own() {
        let long = |last: &str| Said {
            speaker: "n".repeat(200) + last,
            id: "ü".repeat(300),
            session: "a\nb".to_owned(),
            ..said("hi", &[])
        };
        let [one, other] = [long("a"), long("b")].map(|said| said.turns().unwrap().remove(0));
        assert_eq!(one.speaker.as_str().len(), Speaker::LIMIT);
        assert_ne!(one.speaker, other.speaker);
        assert_eq!(one.session.as_str(), "a b");
        assert_eq!(fitted("Noor", 128), "Noor");
    }

    proptest! {
        #[test]
        fn references_fit_the_limits(uri in "\\PC{0,40}", caption in "\\PC{0,20}", times in 1usize..400) {
            let media = media(&uri.repeat(times), &uri.repeat(times), &caption.repeat(times));
            prop_assert!((1..=limits::URI).contains(&media.uri.trim().len()));
            prop_assert!(media.mime_type.len() <= limits::MIME_TYPE && media.caption.len() <= limits::CAPTION);
        }

        #[test]
        fn pieces_hold_the_whole_text_and_fit(text in "(\\PC|\n| ){0,40}", times in 1usize..4000) {
            let text = text.repeat(times);
            let pieces = pieces(&text);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= limits::TEXT));
            prop_assert_eq!(pieces.concat(), text);
        }
    }
}
