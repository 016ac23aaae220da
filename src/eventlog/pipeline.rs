//! Both cores: one thread reads, decompresses and splits, this one replays.
//!
//! Few batches go round between them, so memory is bounded and stays in the
//! cache. A small log is read without a second thread.

use std::sync::mpsc::sync_channel;
use std::thread;

use super::lines::Batch;
use super::read::ReadError;

/// Batches that are filled before another thread is worth its cost: about a
/// mebibyte.
const ALONE: usize = 4;

/// One being filled, one being replayed, one between.
const BATCHES: usize = 3;

/// Fills batches until `fill` says that there are no more, and gives each to
/// `take`, in order. After an error what was filled before it has been given,
/// too.
pub(super) fn run<F>(mut fill: F, mut take: impl FnMut(&Batch)) -> Result<(), ReadError>
where
    F: FnMut(&mut Batch) -> Result<bool, ReadError> + Send,
{
    let mut batch = Batch::default();
    for _ in 0..ALONE {
        if !step(&mut fill, &mut batch, &mut take)? {
            return Ok(());
        }
    }
    if let Some(result) = with_a_thread(&mut fill, &mut take) {
        return result;
    }
    // The system gives no thread: this one can do it all.
    while step(&mut fill, &mut batch, &mut take)? {}
    Ok(())
}

fn step(
    fill: &mut impl FnMut(&mut Batch) -> Result<bool, ReadError>,
    batch: &mut Batch,
    take: &mut impl FnMut(&Batch),
) -> Result<bool, ReadError> {
    let more = fill(batch);
    take(batch);
    more
}

/// `None`: no thread could be started.
fn with_a_thread<F>(fill: &mut F, take: &mut impl FnMut(&Batch)) -> Option<Result<(), ReadError>>
where
    F: FnMut(&mut Batch) -> Result<bool, ReadError> + Send,
{
    thread::scope(|scope| {
        let (give_back, empty) = sync_channel(BATCHES);
        let (hand_over, full) = sync_channel(BATCHES);
        for _ in 0..BATCHES {
            // There is room for all of them.
            let _ = give_back.send(Batch::default());
        }
        let filling = thread::Builder::new().name("decompress".to_owned()).spawn_scoped(
            scope,
            move || -> Result<(), ReadError> {
                while let Ok(mut batch) = empty.recv() {
                    let more = fill(&mut batch);
                    if hand_over.send(batch).is_err() || !more? {
                        break;
                    }
                }
                Ok(())
            },
        );
        let filling = filling.ok()?;
        while let Ok(batch) = full.recv() {
            take(&batch);
            // The other side may have ended.
            let _ = give_back.send(batch);
        }
        match filling.join() {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
