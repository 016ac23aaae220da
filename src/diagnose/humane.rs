//! Numbers as people say them, in headlines and reports: `1 min 12 s`,
//! `1.4 GiB`, `7.3x`, `12 %`.

use std::time::Duration;

/// `350 ms`, `4.2 s`, `48 s`, `1 min 12 s`, `3 h 5 min`, `2 d 4 h`.
pub fn duration(span: Duration) -> String {
    let millis = span.as_millis();
    let seconds = span.as_secs().saturating_add(u64::from(span.subsec_millis() >= 500));
    if millis < 995 {
        format!("{millis} ms")
    } else if millis < 9_950 {
        format!("{:.1} s", span.as_secs_f64())
    } else if seconds < 60 {
        format!("{seconds} s")
    } else if seconds < 3_600 {
        two(seconds / 60, "min", seconds % 60, "s")
    } else if seconds < 172_800 {
        two(seconds / 3_600, "h", seconds % 3_600 / 60, "min")
    } else {
        two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h")
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// Core-time: `42 core-seconds`, `3.4 core-hours`.
pub fn core_time(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 9.95 {
        format!("{seconds:.1} core-seconds")
    } else if seconds < 7_200.0 {
        format!("{seconds:.0} core-seconds")
    } else {
        format!("{:.1} core-hours", seconds / 3_600.0)
    }
}

/// Binary units: `512 B`, `1.4 GiB`, `120 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = 0;
    while value >= 1_023.5 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{} {}", short(value), UNITS[unit])
}

/// Decimal units a second, as disks and networks are sold: `3.2 MB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    if bytes_per_second < 1e6 {
        format!("{} kB/s", short(bytes_per_second / 1e3))
    } else if bytes_per_second < 1e9 {
        format!("{} MB/s", short(bytes_per_second / 1e6))
    } else {
        format!("{} GB/s", short(bytes_per_second / 1e9))
    }
}

/// `7.3x`, `31x`.
pub fn ratio(ratio: f64) -> String {
    format!("{}x", short(ratio))
}

/// `0.4 %`, `12 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// An amount of money: `0.0042 EUR`, `1.50 EUR`, `12,345 EUR`.
pub fn money(amount: f64, currency: &str) -> String {
    let amount = match amount {
        large if large >= 1_000.0 => number(large.round() as u64),
        zero if zero <= 0.0 => "0".to_owned(),
        small if small < 0.0001 => "less than 0.0001".to_owned(),
        small if small < 0.1 => format!("{small:.4}"),
        amount => format!("{amount:.2}"),
    };
    format!("{amount} {currency}")
}

/// `1 task`, `3 tasks`, `12,345 tasks`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// Thousands apart: `12,345`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One decimal below 10, none above.
fn short(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_shows_sixty_seconds() {
        for (millis, text) in [
            (0, "0 ms"),
            (350, "350 ms"),
            (999, "1.0 s"),
            (4_230, "4.2 s"),
            (9_960, "10 s"),
            (48_400, "48 s"),
            (59_700, "1 min"),
            (72_000, "1 min 12 s"),
            (11_100_000, "3 h 5 min"),
            (187_200_000, "2 d 4 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
        assert!(!duration(Duration::MAX).is_empty());
    }

    #[test]
    fn sizes_and_ratios() {
        assert_eq!(bytes(1_023), "1023 B");
        assert_eq!(bytes(1_503_238_554), "1.4 GiB");
        assert_eq!(bytes(u64::MAX), "16 EiB");
        assert_eq!(bytes(1_048_575), "1.0 MiB");
        assert_eq!(rate(3_200_000.0), "3.2 MB/s");
        assert_eq!(ratio(7.31), "7.3x");
        assert_eq!(ratio(31.4), "31x");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(count(1, "task", "tasks"), "1 task");
    }
}
