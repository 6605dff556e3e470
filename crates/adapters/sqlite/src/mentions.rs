//! Which exchanges and which injections hold words of a turn. The turns of one are all over these lists, a page for each, so they are written for
//! many at once, and whoever looks for a turn has those written first that wait.

use sqlx::SqliteConnection;

use crate::failure::Outcome;

/// How many wait at most.
const WAITING: i64 = 64;

/// One of the lists.
pub struct Mentions {
    count: &'static str,
    list: &'static str,
    done: &'static str,
}

/// Of exchanges.
pub const EXCHANGES: Mentions = Mentions {
    count: "SELECT count(*) FROM unlisted_exchanges",
    list: "INSERT OR IGNORE INTO exchange_turns (tenant, space, turn, exchange)
         SELECT e.tenant, t.value ->> 0, unhex(t.value ->> 1, '-'), e.id
         FROM unlisted_exchanges u JOIN exchanges e ON e.id = u.exchange, json_each(e.turns) t ORDER BY 1, 2, 3",
    done: "DELETE FROM unlisted_exchanges",
};

/// Of injections.
pub const INJECTIONS: Mentions = Mentions {
    count: "SELECT count(*) FROM unlisted_injections",
    list: "INSERT OR IGNORE INTO injection_turns (tenant, space, turn, at, id, injection)
         SELECT i.tenant, t.value ->> 0, unhex(t.value ->> 1, '-'), i.at, i.id, i.key
         FROM unlisted_injections u JOIN injections i ON i.key = u.injection, json_each(i.turns) t ORDER BY 1, 2, 3",
    done: "DELETE FROM unlisted_injections",
};

impl Mentions {
    /// How many wait to be listed.
    pub async fn waiting(&self, connection: &mut SqliteConnection) -> Outcome<i64> {
        Ok(sqlx::query_scalar(self.count).fetch_one(connection).await?)
    }

    /// Lists those that wait, where they are many.
    pub async fn list_many(&self, connection: &mut SqliteConnection) -> Outcome<()> {
        match self.waiting(connection).await? {
            waiting if waiting >= WAITING => self.list_all(connection).await,
            _ => Ok(()),
        }
    }

    /// Lists all that wait.
    pub async fn list_all(&self, connection: &mut SqliteConnection) -> Outcome<()> {
        for change in [self.list, self.done] {
            sqlx::query(change).execute(&mut *connection).await?;
        }
        Ok(())
    }
}
