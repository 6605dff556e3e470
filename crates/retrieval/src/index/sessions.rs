//! The sessions of a space: their turns in order, and who speaks in them.

/// Indexed by the number of the session's name.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Vec<Session>);

#[derive(Debug, Default)]
struct Session {
    /// Turn slots, by their order.
    turns: Vec<u32>,
    /// Number of a speaker and how many turns are theirs.
    speakers: Vec<(u32, u32)>,
    /// Terms of all its passages, with repeats.
    length: u32,
}

impl Sessions {
    /// The turns of a session in order; empty for a session that is not there.
    pub(crate) fn turns(&self, session: u32) -> &[u32] {
        self.0
            .get(session as usize)
            .map_or(&[], |session| &session.turns)
    }

    /// How many different speakers a session has.
    pub(crate) fn speakers(&self, session: u32) -> usize {
        self.0
            .get(session as usize)
            .map_or(0, |session| session.speakers.len())
    }

    /// Numbers of sessions ever given out; some may be empty.
    pub(crate) fn slots(&self) -> usize {
        self.0.len()
    }

    /// Terms of a session, with repeats.
    pub(crate) fn length(&self, session: u32) -> u32 {
        self.0
            .get(session as usize)
            .map_or(0, |session| session.length)
    }

    /// Puts a turn of `length` terms at place `at`.
    pub(crate) fn insert(&mut self, session: u32, at: usize, turn: u32, speaker: u32, length: u32) {
        if self.0.len() <= session as usize {
            self.0.resize_with(session as usize + 1, Session::default);
        }
        let session = &mut self.0[session as usize];
        session.turns.insert(at, turn);
        session.length += length;
        match session
            .speakers
            .iter_mut()
            .find(|(known, _)| *known == speaker)
        {
            Some((_, turns)) => *turns += 1,
            None => session.speakers.push((speaker, 1)),
        }
    }

    /// Takes out the turn of `length` terms at place `at`.
    pub(crate) fn remove(&mut self, session: u32, at: usize, speaker: u32, length: u32) {
        let session = &mut self.0[session as usize];
        session.turns.remove(at);
        session.length -= length;
        session.speakers.retain_mut(|(known, turns)| {
            *turns -= u32::from(*known == speaker);
            *turns > 0
        });
        if session.turns.is_empty() {
            *session = Session::default();
        }
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        let heap =
            |session: &Session| session.turns.capacity() * 4 + session.speakers.capacity() * 8;
        self.0.capacity() * size_of::<Session>() + self.0.iter().map(heap).sum::<usize>()
    }
}
