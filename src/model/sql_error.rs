//! What sort of error a message tells of, without its text.

/// Spark's error condition at the beginning of a message
/// (`[DIVIDE_BY_ZERO] Division by zero.`), or the class of the exception.
pub(crate) fn error_class(message: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let line = message.trim_start().lines().next()?;
    let is_condition = |text: &str| {
        !text.is_empty()
            && text.len() <= LONGEST
            && text
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "_.".contains(c))
    };
    let bracketed = |text: &str| {
        let (inside, _) = text.strip_prefix('[')?.split_once(']')?;
        is_condition(inside).then(|| inside.to_owned())
    };
    if let Some(condition) = bracketed(line) {
        return Some(condition);
    }
    // `... (TID 35) (host executor 1): java.lang.RuntimeException: text`
    let line = match line.split_once("): ") {
        Some((_, after)) if line.starts_with("Job aborted due to stage failure") => after,
        _ => line,
    };
    let (class, rest) = line.split_once(':').unwrap_or((line, ""));
    if let Some(condition) = bracketed(rest.trim_start()) {
        return Some(condition);
    }
    // A message may be anything: only what is named as exceptions are.
    let is_class = class.contains('.')
        && class.len() <= LONGEST
        && class.chars().all(|c| c.is_ascii_alphanumeric() || "._$".contains(c))
        && ["Exception", "Error", "Failure", "Throwable"].iter().any(|end| class.ends_with(end));
    is_class.then(|| class.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_errors() {
        for (message, expected) in [
            ("[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`", Some("DIVIDE_BY_ZERO")),
            ("[CAST_INVALID_INPUT.SUB_1] The value", Some("CAST_INVALID_INPUT.SUB_1")),
            (
                "org.apache.spark.SparkException: Job aborted due to stage failure",
                Some("org.apache.spark.SparkException"),
            ),
            (
                "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division",
                Some("DIVIDE_BY_ZERO"),
            ),
            (
                "Job aborted due to stage failure: Task 1 in stage 36.0 failed 1 times, most recent \
                 failure: Lost task 1.0 in stage 36.0 (TID 35) (127.0.0.1 executor 1): \
                 java.lang.RuntimeException: no such account\n\tat x",
                Some("java.lang.RuntimeException"),
            ),
            ("something went wrong: select 1", None),
            ("[select secret] x", None),
            ("my.secret.word", None),
            ("my.secret: word", None),
            ("", None),
        ] {
            assert_eq!(error_class(message).as_deref(), expected, "{message}");
        }
    }
}
