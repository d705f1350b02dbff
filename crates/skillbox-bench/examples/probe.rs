use skillbox_repository::*;
use std::time::Instant;
fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap();
    let root = args.next().unwrap();
    let rounds: usize = args.next().unwrap().parse().unwrap();
    let threads: usize = args.next().map_or(2, |t| t.parse().unwrap());
    let open = || {
        Repository::open(
            vec![Source::Directory {
                path: (&root).into(),
                scope: Scope::Project,
            }],
            ScanOptions {
                threads: threads.try_into().unwrap(),
                ..Default::default()
            },
        )
    };
    let kept = open();
    println!(
        "{} skills {} diagnostics",
        kept.catalog().len(),
        kept.catalog().diagnostics().len()
    );
    let first = kept.catalog().skills().next().unwrap().path().to_owned();
    for _ in 0..rounds {
        if what == "edit" {
            use std::io::Write;
            writeln!(std::fs::OpenOptions::new().append(true).open(&first).unwrap(), "x").unwrap();
        }
        let t = Instant::now();
        match &*what {
            "cold" => {
                open();
            }
            _ => {
                kept.refresh();
            }
        }
        print!("{:.1} ", t.elapsed().as_secs_f64() * 1e3);
    }
    println!();
}
