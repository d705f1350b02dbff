//! The spawner that the tests start, and a small command line to make a run as another user.
//!
//! `sandbox-test-spawner run PROFILE SCRIPT` prints the script's output and then, in one line each, how it ended and
//! what was enforced.
#![expect(
    dead_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test program prints, fails loudly, and uses its own part of the run"
)]

#[path = "run.rs"]
mod run;

use skillbox_sandbox::Spawner;

fn main() {
    skillbox_sandbox::become_spawner_if_asked();
    let words: Vec<String> = std::env::args().collect();
    let [_, verb, profile, script] = words.as_slice() else {
        panic!("run PROFILE SCRIPT, not {words:?}")
    };
    assert_eq!(verb, "run");
    let spawner = Spawner::start(&std::env::current_exe().unwrap()).unwrap();
    let run = run::Run::bash(script).profile(profile);
    if let Err(error) = run.plan(&spawner) {
        println!("refused: {error}\nhint: {}", error.hint().unwrap_or_default());
        return;
    }
    let done = run.launch(&spawner);
    print!("{}{}", done.stdout, done.stderr);
    println!("ended: {:?}", done.ended.end);
    println!("tier: {:?}", done.ended.enforcement.tier);
    for (layer, state) in &done.ended.enforcement.layers {
        println!("{layer}: {state:?}");
    }
}
