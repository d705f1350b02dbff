//! Reads any text as a profile. Rejected text has diagnostics; an accepted profile has a filter and limits.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use skillbox_sandbox::Profiles;

static SHIPPED: LazyLock<Profiles> = LazyLock::new(Profiles::shipped);

fuzz_target!(|text: &str| {
    match SHIPPED.check(Path::new("profiles/p.yaml"), text) {
        Ok(profile) => {
            assert!(profile.limits.default.workspace.bytes() > 0);
            assert!(profile.limits.default.wall <= profile.limits.wall_max);
        }
        Err(diagnostics) => assert!(diagnostics.iter().all(|diagnostic| !diagnostic.message.is_empty())),
    }
});
