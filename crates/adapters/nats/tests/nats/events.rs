//! Events between processes.

use memfleet_ports::conformance::samples::{batch, home};
use memfleet_ports::events::{Event, Events};

use crate::server::{options, replicas, soon};

#[tokio::test]
async fn events_are_heard_in_the_other_process_and_do_not_come_back() {
    let ([first, second], _streams) = replicas(options()).await;
    let (here, there) = (Events::default(), Events::default());
    let (mut heard_here, mut heard_there) = (here.listen(), there.listen());
    let told = async {
        let settled = Event::Settled {
            scope: home(),
            batch: batch("k", vec![]).id,
        };
        // Until the subscriptions stand; a listener that waits for something asks again as well.
        while heard_there.is_empty() {
            here.announce(settled.clone());
            tokio::task::yield_now().await;
        }
        let first = heard_there.recv().await;
        let forgotten = Event::Forgotten { scope: home() };
        here.announce(forgotten.clone());
        let mut last = first.clone();
        while last != Ok(forgotten.clone()) {
            last = heard_there.recv().await;
        }
        there.announce(Event::Forgotten { scope: home() });
        (first, settled)
    };
    let (first_heard, settled) = soon("the events", async {
        tokio::select! {
            () = first.bridge(&here) => panic!("the bridge ended"),
            () = second.bridge(&there) => panic!("the bridge ended"),
            told = told => told,
        }
    })
    .await;
    assert_eq!(first_heard, Ok(settled));
    let mut own = 0;
    while let Ok(event) = heard_here.try_recv() {
        own += usize::from(event == Event::Forgotten { scope: home() });
    }
    assert!(own <= 2, "its own, once, and the other's");
}
