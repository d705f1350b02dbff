//! Generates frontmatter in the styles of public skills: quoted texts over several lines, flow and block collections,
//! comments, and the odd indentation that PyYAML accepts.

/// A seeded random number generator (splitmix64), so that every machine compares the same texts.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const WORDS: &[&str] = &[
    "Use",
    "when",
    "files",
    "PDF",
    "it's",
    "a,b",
    "x:y",
    "(see",
    "below)",
    "50%",
    "é",
    "技能",
    "-",
    "#1",
    "1.0",
    "[x]",
    "{y}",
    "and",
    "e.g.",
    "http://x.org/?a=b&c",
    "👍",
    "*",
    "&c",
    "true",
    "--flag",
    "key:",
    "\"q\"",
];
const INDENTS: &[&str] = &["", "", " ", "  ", "    "];

/// Texts between the delimiters, each with a name and a description among other fields.
pub fn frontmatter_texts(count: usize, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    (0..count).map(|_| frontmatter(&mut random)).collect()
}

fn frontmatter(random: &mut Random) -> String {
    let mut fields = vec![field(random, "name", name), field(random, "description", text)];
    for (key, percent) in [("license", 40), ("compatibility", 30)] {
        if random.chance(percent) {
            fields.push(field(random, key, text));
        }
    }
    if random.chance(60) {
        fields.push(field(random, "metadata", mapping));
    }
    for key in ["allowed-tools", "tags"] {
        if random.chance(40) {
            fields.push(field(random, key, list));
        }
    }
    if random.chance(10) {
        fields.push("# a comment: with a colon\n".to_owned());
    }
    if random.chance(5) {
        fields.push(field(random, "license", text));
    }
    for at in (1..fields.len()).rev() {
        fields.swap(at, random.below(at + 1));
    }
    let separator = if random.chance(10) { "\n" } else { "" };
    let joined = fields.join(separator);
    if random.chance(15) {
        joined.replace('\n', "\r\n")
    } else {
        joined
    }
}

fn field(random: &mut Random, key: &str, value: fn(&mut Random) -> String) -> String {
    let key = match random.below(20) {
        0 => format!("\"{key}\""),
        1 => format!("'{key}'"),
        _ => key.to_owned(),
    };
    let colon = random.one_of(&[": ", ": ", ": ", ":  ", " : "]);
    let comment = random.one_of(&["", "", "", "", " # note"]);
    let value = value(random);
    // A comment after a block text would be part of it.
    match value.starts_with(['|', '>', '\n']) || value.contains("\n ") {
        true => format!("{key}{colon}{value}\n"),
        false => format!("{key}{colon}{value}{comment}\n"),
    }
}

fn name(random: &mut Random) -> String {
    let name = format!("skill-{}", random.below(100));
    match random.below(6) {
        0 => format!("\"{name}\""),
        1 => format!("'{name}'"),
        2 => format!("\n  {name}"),
        _ => name,
    }
}

fn words(random: &mut Random, count: usize) -> Vec<&'static str> {
    (0..count).map(|_| random.one_of(WORDS)).collect()
}

/// Joins words with blanks and, sometimes, line breaks followed by any indentation.
fn over_lines(random: &mut Random, words: &[String], indents: &[&str]) -> String {
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            let separator = match random.below(8) {
                0 | 1 => format!("\n{}", random.one_of(indents)),
                2 if random.chance(30) => format!("\n\n{}", random.one_of(indents)),
                3 if random.chance(20) => format!("  \n{}", random.one_of(indents)),
                _ => " ".to_owned(),
            };
            out.push_str(&separator);
        }
        out.push_str(word);
    }
    out
}

fn text(random: &mut Random) -> String {
    let count = 2 + random.below(10);
    let words = words(random, count);
    match random.below(10) {
        0..=2 => {
            let escape = |word: &&str| word.replace('\\', "\\\\").replace('"', "\\\"");
            let mut escaped: Vec<String> = words.iter().map(escape).collect();
            if random.chance(30) {
                let special = random.one_of(&["\\n", "\\t", "\\u00e9", "\\x41", "\\\\", "\\/", "a\\\n  b", "\\e"]);
                escaped.insert(1, special.to_owned());
            }
            format!("\"{}\"", over_lines(random, &escaped, INDENTS))
        }
        3..=5 => {
            let escaped: Vec<String> = words.iter().map(|word| word.replace('\'', "''")).collect();
            format!("'{}'", over_lines(random, &escaped, INDENTS))
        }
        6 => {
            let header = random.one_of(&["|", "|-", "|+", ">", ">-", ">+", "|2", ">2-"]);
            let lines: Vec<String> = words.chunks(3).map(|line| format!("  {}\n", line.join(" "))).collect();
            let gap = random.one_of(&["", "", "\n", "    \n"]);
            format!("{header}\n{}", lines.join(gap))
                .trim_end_matches('\n')
                .to_owned()
        }
        7 => {
            let plain: Vec<String> = plain_words(&words);
            over_lines(random, &plain, &["  ", "    ", " "])
        }
        8 => format!("\n  {}", plain_words(&words).join(" ")),
        _ => plain_words(&words).join(" "),
    }
}

/// Words that are a plain scalar of one line when joined.
fn plain_words(words: &[&str]) -> Vec<String> {
    let is_plain = |word: &&&str| !word.ends_with(':') && !word.starts_with(['#', '-', '[', '{', '*', '&', '"']);
    let plain = words.iter().filter(is_plain).map(|word| (*word).to_owned());
    std::iter::once("Does".to_owned()).chain(plain).collect()
}

fn scalar(random: &mut Random) -> String {
    match random.below(8) {
        0 => "1.0".to_owned(),
        1 => "true".to_owned(),
        2 => "2024-01-02".to_owned(),
        3 => "\"a: b\"".to_owned(),
        4 => "'it''s'".to_owned(),
        5 => "0x1F".to_owned(),
        6 => format!("\"two\n{}lines\"", random.one_of(INDENTS)),
        _ => format!("word{}", random.below(9)),
    }
}

fn mapping(random: &mut Random) -> String {
    let count = 1 + random.below(4);
    let pairs: Vec<(String, String)> = (0..count).map(|at| (format!("k{at}"), scalar(random))).collect();
    if random.chance(50) {
        let indent = random.one_of(&["  ", "    ", " "]);
        let lines: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("\n{indent}{key}: {value}"))
            .collect();
        return lines.concat();
    }
    let pairs = pairs.iter().map(|(key, value)| match random.below(3) {
        0 => format!("\"{key}\": {value}"),
        1 => format!("\"{key}\":{value}"),
        _ => format!("{key}: {value}"),
    });
    let pairs: Vec<String> = pairs.collect();
    let nested = random.one_of(&["", "", ", \"n\": {\"requires\": {\"bins\": [\"x\", \"y\"]}}", ","]);
    match random.below(3) {
        0 => format!("{{{}{nested}}}", pairs.join(", ")),
        1 => format!("{{ {}{nested} }}", pairs.join(" , ")),
        _ => {
            let indent = random.one_of(INDENTS);
            let close = random.one_of(INDENTS);
            format!("{{\n{indent}{}{nested}\n{close}}}", pairs.join(&format!(",\n{indent}")))
        }
    }
}

fn list(random: &mut Random) -> String {
    const TOOLS: &[&str] = &["Read", "Write", "Bash", "\"Edit\"", "'Grep'", "WebFetch", "mcp__a__b"];
    let count = 1 + random.below(4);
    let items: Vec<&str> = (0..count).map(|_| random.one_of(TOOLS)).collect();
    match random.below(4) {
        0 => {
            let indent = random.one_of(&["", "  ", "    "]);
            items.iter().map(|item| format!("\n{indent}- {item}")).collect()
        }
        1 => format!("[{}]", items.join(", ")),
        2 => format!("[{} ]", items.join(",")),
        _ => {
            let indent = random.one_of(INDENTS);
            let close = random.one_of(INDENTS);
            let comma = random.one_of(&["", ","]);
            format!("[\n{indent}{}{comma}\n{close}]", items.join(&format!(",\n{indent}")))
        }
    }
}
