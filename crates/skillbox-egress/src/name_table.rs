//! The loopback address that each allowed name has inside a run.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use skillbox_model::HostName;

/// The network of the addresses: 127.64.0.0/10, all of which are on the loopback interface.
const FIRST_ADDRESS: u32 = Ipv4Addr::new(127, 64, 0, 1).to_bits();

/// The most names of one run: a wildcard allows more names than a run can need.
pub(crate) const MAX_NAMES: usize = 4096;

/// The names that a run has asked for, each with its own address.
#[derive(Debug, Default)]
pub(crate) struct NameTable(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    addresses: HashMap<HostName, Ipv4Addr>,
    /// In the order of the addresses.
    names: Vec<HostName>,
}

impl NameTable {
    /// The address of a name, which must be allowed; none if the table is full.
    pub fn address_of(&self, name: &HostName) -> Option<Ipv4Addr> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = table.addresses.get(name) {
            return Some(*address);
        }
        let index = table.names.len();
        if index >= MAX_NAMES {
            return None;
        }
        let address = Ipv4Addr::from_bits(FIRST_ADDRESS + u32::try_from(index).ok()?);
        table.names.push(name.clone());
        table.addresses.insert(name.clone(), address);
        Some(address)
    }

    /// The name that has this address.
    pub fn name_at(&self, address: Ipv4Addr) -> Option<HostName> {
        let index = address.to_bits().checked_sub(FIRST_ADDRESS)?;
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.names.get(usize::try_from(index).ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_own_address_and_the_table_is_bounded() {
        let table = NameTable::default();
        let name = |index: usize| HostName::parse(&format!("h{index}.example")).unwrap();
        let first = table.address_of(&name(0)).unwrap();
        assert_eq!(first, Ipv4Addr::new(127, 64, 0, 1));
        assert_eq!(table.address_of(&name(0)), Some(first));
        for index in 1..MAX_NAMES {
            let address = table.address_of(&name(index)).unwrap();
            assert_eq!(table.name_at(address), Some(name(index)));
        }
        assert_eq!(table.address_of(&name(MAX_NAMES)), None);
        assert_eq!(table.name_at(Ipv4Addr::new(127, 0, 0, 1)), None);
        assert_eq!(table.name_at(Ipv4Addr::new(127, 127, 0, 1)), None);
        assert_eq!(table.name_at(Ipv4Addr::BROADCAST), None);
    }
}
