//! The spawner that the tests start: a program that is nothing else.

fn main() {
    skillbox_sandbox::become_spawner_if_asked();
}
