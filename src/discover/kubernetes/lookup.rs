//! Where the UI of a driver answers: address and ports of its pod.

use std::net::IpAddr;

use crate::config::ServerUrl;

/// Where Spark's UI is unless `spark.ui.port` says otherwise.
pub const DEFAULT_UI_PORT: u16 = 4040;
/// Ports of one pod: a notebook server with so many sessions has one each.
const MOST_PORTS: usize = 16;

/// Address and ports of a driver's UI.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ui {
    pub address: IpAddr,
    /// Empty where neither pod nor operator tells one.
    pub ports: Vec<u16>,
    /// How often the container started anew: another process, another
    /// application.
    pub restarts: u32,
}

impl Ui {
    /// The URLs to ask; `told` is a port that somebody else told.
    pub fn urls(&self, told: Option<u16>) -> Vec<ServerUrl> {
        let host = match self.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let others = [told.unwrap_or(DEFAULT_UI_PORT)];
        let ports = if self.ports.is_empty() { &others[..] } else { &self.ports };
        // An address and a port always make a URL.
        ports.iter().filter_map(|port| format!("http://{host}:{port}").parse().ok()).collect()
    }
}

/// The ports in the value of the annotation; empty: the usual one. `None`
/// where it says that no driver is there, or nothing that is understood.
pub(super) fn annotated(value: &str) -> Option<Vec<u16>> {
    match value.trim() {
        "" | "true" => return Some(Vec::new()),
        "false" => return None,
        _ => {}
    }
    let ports: Result<Vec<u16>, _> = value.split(',').map(|port| port.trim().parse()).collect();
    let mut ports = ports.ok().filter(|ports| !ports.contains(&0))?;
    ports.dedup();
    ports.truncate(MOST_PORTS);
    Some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(address: &str, ports: &[u16], told: Option<u16>) -> Vec<String> {
        let address = address.parse().unwrap();
        let ui = Ui { address, ports: ports.to_vec(), restarts: 0 };
        ui.urls(told).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_pods_port_then_what_others_tell_then_the_usual_one() {
        assert_eq!(urls("10.1.2.3", &[4041], Some(4050)), ["http://10.1.2.3:4041"]);
        assert_eq!(urls("10.1.2.3", &[], Some(4050)), ["http://10.1.2.3:4050"]);
        assert_eq!(urls("10.1.2.3", &[], None), ["http://10.1.2.3:4040"]);
        assert_eq!(
            urls("fd00::7", &[4040, 4041], None),
            ["http://[fd00::7]:4040", "http://[fd00::7]:4041"]
        );
    }

    #[test]
    fn an_annotation_names_ports_or_the_usual_one_or_none() {
        for (value, expected) in [
            ("true", Some(vec![])),
            ("", Some(vec![])),
            ("4041", Some(vec![4041])),
            ("4040, 4041", Some(vec![4040, 4041])),
            ("false", None),
            ("http", None),
            ("0", None),
            ("99999", None),
        ] {
            assert_eq!(annotated(value), expected, "{value:?}");
        }
    }
}
