fn main() {
    for _ in 0..2000 {
        std::hint::black_box(skillbox_sandbox::Profiles::shipped_chain("default"));
    }
}
