//! Task ends without what is not read, before anything is parsed: they are
//! nearly all of a log, and most of each is not asked for.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memchr2;
use memchr::memmem::Finder;

use super::accumulables;

/// A TaskEnd without what is most of the line and is not read: of the
/// accumulables of its task all but the updates of plan metrics, which are
/// written shorter ([`accumulables::shorten`]), the executor's peaks where
/// Spark took no sample, and the numbers of push-based shuffle. The rest is put
/// behind `texts`; where, is the result.
/// `None` for any other line, and where one is not laid out as Spark lays it
/// out.
///
/// Inside a JSON string every quote has a backslash before it, so no mark can
/// be part of a text. Where a second event begins in what would be cut (two
/// lines whose line end was lost) nothing is.
pub(super) fn without_unread(line: &[u8], texts: &mut String) -> Option<Range<usize>> {
    if !line.starts_with(b"{\"Event\":\"SparkListenerTaskEnd\"") {
        return None;
    }
    let from = texts.len();
    if put_read_parts(line, texts).is_none() {
        texts.truncate(from);
        return None;
    }
    Some(from..texts.len())
}

fn put_read_parts(line: &[u8], texts: &mut String) -> Option<()> {
    const ACCUMULABLES: &[u8] = b",\"Accumulables\":[";
    const SHORT: &str = ",\"Accumulables\":\"";
    const END: &[u8] = b"]},\"Task Executor Metrics\":";
    const NO_SAMPLE: &[u8] = b"{\"JVMHeapMemory\":0,";
    const PUSH_BASED: &[u8] = b",\"Push Based Shuffle\":{";
    static MARKS: LazyLock<Marks> = LazyLock::new(|| Marks {
        accumulables: Finder::new(ACCUMULABLES),
        end: Finder::new(END),
        metrics: Finder::new("},\"Task Metrics\":"),
        push_based: Finder::new(PUSH_BASED),
        event: Finder::new("\"Event\":"),
    });

    let marks = &*MARKS;
    let begin = marks.accumulables.find(line)?;
    let end = begin + marks.end.find(&line[begin..])?;
    if marks.event.find(&line[begin..end]).is_some() {
        return None;
    }
    texts.push_str(str::from_utf8(&line[..begin]).ok()?);
    let cut_from = texts.len();
    texts.push_str(SHORT);
    let list = str::from_utf8(&line[begin + ACCUMULABLES.len()..end]).ok()?;
    accumulables::shorten(list, texts)?;
    if texts.len() == cut_from + SHORT.len() {
        texts.truncate(cut_from);
    } else {
        texts.push('"');
    }
    let peaks = &line[end + END.len()..];
    let rest = match marks.metrics.find(peaks) {
        Some(metrics)
            if peaks.starts_with(NO_SAMPLE) && marks.event.find(&peaks[..metrics]).is_none() =>
        {
            &peaks[metrics..]
        }
        _ => &line[end + 1..],
    };
    let rest = str::from_utf8(rest).ok()?;
    let push_based = marks.push_based.find(rest.as_bytes()).and_then(|begin| {
        // An object of numbers, which holds no other.
        let within = &rest.as_bytes()[begin + PUSH_BASED.len()..];
        let end = memchr2(b'}', b'{', within).filter(|end| within[*end] == b'}')?;
        Some((begin, begin + PUSH_BASED.len() + end + 1))
    });
    match push_based {
        Some((begin, end)) => {
            texts.push_str(&rest[..begin]);
            texts.push_str(&rest[end..]);
        }
        None => texts.push_str(rest),
    }
    Some(())
}

/// What [`without_unread`] looks for.
struct Marks {
    accumulables: Finder<'static>,
    end: Finder<'static>,
    metrics: Finder<'static>,
    push_based: Finder<'static>,
    event: Finder<'static>,
}
