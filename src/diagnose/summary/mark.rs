//! Hashes that are the same in every build and on every machine: they are
//! stored.

/// FNV-1a of the words, each ended by a zero, then mixed so that every bit of
/// it depends on all of them (the finalizer of SplitMix64).
fn hash(words: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.iter().flat_map(|word| word.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Of texts that may be secrets: so short that nobody can be guessed by it.
pub(super) fn byte(words: &[&str]) -> u8 {
    hash(words).to_le_bytes()[0]
}

/// Of Spark's own words. Never 0, which stands for "not known".
pub(super) fn shape(words: &[&str]) -> u32 {
    let [a, b, c, d, ..] = hash(words).to_le_bytes();
    u32::from_le_bytes([a, b, c, d]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_stays_what_it_is() {
        assert_eq!(shape(&["Sort", "Exchange"]), shape(&["Sort", "Exchange"]));
        assert_ne!(shape(&["Sort", "Exchange"]), shape(&["SortExchange", ""]));
        assert_ne!(shape(&[]), 0);
        // Of 10,000 values each mark is shared by some 40: no guess is confirmed.
        let mut of_mark = [0_u32; 256];
        for pin in 0..10_000 {
            of_mark[usize::from(byte(&["spark.my.pin", &pin.to_string()]))] += 1;
        }
        assert!(of_mark.iter().all(|count| *count > 10), "{of_mark:?}");
    }
}
