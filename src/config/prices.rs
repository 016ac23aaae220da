//! What computing costs, where the operator says so.

use serde::{Deserialize, Serialize};

/// Characters of a currency: it is a label value.
const CURRENCY_LENGTH: usize = 16;

/// Prices of what executors are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Of a core for an hour.
    pub core_hour: Option<f64>,
    /// Of a GiB of memory for an hour.
    pub gib_hour: Option<f64>,
    /// The label of the metrics, and what reports write beside amounts.
    pub currency: String,
}

impl Prices {
    /// Whether there is a price at all.
    pub fn are_given(&self) -> bool {
        self.core_hour.is_some() || self.gib_hour.is_some()
    }

    /// What types alone cannot refuse.
    pub fn validate(&self) -> Result<(), String> {
        for (key, price) in [("core_hour", self.core_hour), ("gib_hour", self.gib_hour)] {
            if let Some(price) = price
                && !(price.is_finite() && price >= 0.0)
            {
                return Err(format!(
                    "prices.{key} is {price}: a price is a number from 0 on; leave it out where \
                     there is none"
                ));
            }
        }
        let currency = &self.currency;
        if self.are_given() && currency.trim().is_empty() {
            return Err(
                "prices.currency is missing: amounts without one mean nothing; write, for \
                        example, `currency: EUR`"
                    .to_owned(),
            );
        }
        let is_fit = |c: char| !c.is_control() && !c.is_whitespace();
        if currency.chars().count() > CURRENCY_LENGTH || !currency.chars().all(is_fit) {
            return Err(format!(
                "prices.currency {currency:?} becomes a label: write at most {CURRENCY_LENGTH} \
                 characters without blanks, for example EUR"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn prices_are_checked() {
        for good in [
            "prices: {core_hour: 0.04, gib_hour: 0.005, currency: EUR}",
            "prices: {core_hour: 0, currency: credits}",
            "prices: {gib_hour: 1, currency: €}",
            "prices: {}",
            "",
        ] {
            Config::parse(good).expect(good).check().expect(good);
        }
        for (bad, part) in [
            ("prices: {core_hour: -1, currency: EUR}", "prices.core_hour is -1"),
            ("prices: {gib_hour: .nan, currency: EUR}", "prices.gib_hour is NaN"),
            ("prices: {gib_hour: .inf, currency: EUR}", "prices.gib_hour is inf"),
            ("prices: {core_hour: 1}", "prices.currency is missing"),
            ("prices: {core_hour: 1, currency: ' '}", "prices.currency is missing"),
            ("prices: {core_hour: 1, currency: 'US Dollars'}", "without blanks"),
            ("prices: {core_hour: 1, currency: aaaaaaaaaaaaaaaaa}", "at most 16"),
        ] {
            let config = Config::parse(bad).expect(bad);
            let error = config.check().expect_err(bad);
            assert!(error.contains(part), "{error}");
        }
        let error = Config::parse("prices: {core_hours: 1}").expect_err("unknown");
        assert!(error.contains("did you mean `core_hour`?"), "{error}");
    }
}
