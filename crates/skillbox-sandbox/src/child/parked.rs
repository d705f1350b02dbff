//! A child that was prepared ahead and waits for its run.

use std::os::fd::{AsFd, OwnedFd};

use super::{Belongings, Child, SETUP_FAILED, exit};
use crate::kernel::socket;
use crate::spawner::protocol::{Answer, Orders, decode};

/// Prepares, parks, and lives as the child of the one run that is sent through `bell`. Does not return.
pub(crate) fn park(orders: &Orders<'_>, belongings: Belongings, bell: OwnedFd) -> ! {
    let mut child = Child::new(orders, belongings);
    // Whatever fails here fails again in the launch that finds this slot dead, and is told there.
    if child.prepare().is_err() || child.let_go_of_others(&bell).is_err() {
        exit(SETUP_FAILED)
    }
    let mut buffer = vec![0; socket::MAX_MESSAGE];
    let Ok(received) = socket::receive(bell.as_fd(), &mut buffer) else {
        exit(SETUP_FAILED)
    };
    if received.length == 0 {
        exit(0)
    }
    let Ok(orders) = decode::<Orders<'static>>(&buffer[..received.length]) else {
        exit(SETUP_FAILED)
    };
    drop(bell);
    let Child {
        mut belongings,
        hunts,
        untold,
        ..
    } = child;
    if belongings.take_over(&orders, received.descriptors).is_none() {
        exit(SETUP_FAILED)
    }
    let mut child = Child {
        hunts,
        ..Child::new(&orders, belongings)
    };
    for failure in untold {
        child.tell(&Answer::Degraded(failure));
    }
    child.release();
    exit(SETUP_FAILED)
}

impl Belongings {
    /// Takes what a run brings, in the order of the message.
    fn take_over(&mut self, orders: &Orders<'_>, descriptors: Vec<OwnedFd>) -> Option<()> {
        let mut list = descriptors.into_iter();
        self.answers = Some(list.next()?);
        self.stdio = Some([list.next()?, list.next()?, list.next()?]);
        self.mounts = orders
            .steps
            .iter()
            .map(|step| if step.op.mounts_descriptor() { list.next() } else { None })
            .collect();
        Some(())
    }
}
