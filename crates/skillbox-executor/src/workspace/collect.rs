//! Collects output files through descriptors and within limits, after the last process of the run has ended.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Mutex;

use rustix::io::Errno;
use skillbox_model::{ContentEncoding, Digest, RefusedOutput, RelPath};

use super::candidates::{Candidates, refusal_reason};
use super::content::InlineAllowance;
use super::{Baseline, Workspace, content, nofollow};
use crate::job::{CollectionSpec, ExcessFileReporting};

/// From this total size on, reading on two threads is faster.
const PARALLEL_READ_MIN_BYTES: u64 = 4 << 20;

/// The collected outputs.
#[derive(Debug, Default)]
pub struct Outputs {
    /// The files, ordered by name.
    pub files: Vec<CollectedFile>,
    /// The first hundred files that matched and were refused.
    pub refused: Vec<RefusedOutput>,
    /// The number of further refused files, which are not named.
    pub unnamed_refusals: u64,
    /// Whether files were refused because there were too many.
    pub is_file_limit_reached: bool,
    /// Whether files were refused because all together were too large.
    pub is_byte_limit_reached: bool,
    /// The first hundred files that matched and are the same as before the run.
    pub unchanged: Vec<String>,
}

/// One collected file. Its descriptor stays valid after the workspace is removed, so that it can be saved later.
#[derive(Debug)]
pub struct CollectedFile {
    /// The path below the workspace.
    pub name: RelPath,
    /// The size of the whole file.
    pub size_bytes: u64,
    /// The digest of the whole file.
    pub digest: Digest,
    /// The type, determined by the content, then by the name.
    pub mime_type: String,
    /// The content, if requested.
    pub content: Option<String>,
    /// The encoding of `content`.
    pub encoding: Option<ContentEncoding>,
    /// Whether `content` is only the beginning of the file.
    pub truncated: bool,
    /// The open file, if requested.
    pub file: Option<File>,
}

/// Collects the files that the globs match and that differ from the baseline.
pub fn collect(workspace: &Workspace, spec: &CollectionSpec, baseline: &Baseline) -> rustix::io::Result<Outputs> {
    if spec.globs.is_empty() {
        return Ok(Outputs::default());
    }
    let mut candidates = Candidates::find(workspace, &spec.globs, spec.max_files, baseline)?;
    let device = rustix::fs::fstat(workspace.root())?.st_dev;
    let mut accepted = Vec::new();
    let mut quota = FileQuota::new(spec);
    let (mut has_excess_files, mut has_excess_bytes) = (false, false);
    for (name, size) in std::mem::take(&mut candidates.files) {
        let is_file_limit_reached = quota.is_file_limit_reached();
        if quota.try_reserve(size) {
            accepted.push((name, size));
            continue;
        }
        has_excess_files |= is_file_limit_reached;
        has_excess_bytes |= !is_file_limit_reached;
        if is_file_limit_reached && spec.excess_files == ExcessFileReporting::CountOnly {
            candidates.unnamed_refusals += 1;
        } else if is_file_limit_reached {
            candidates.refuse(&name, &format!("over the limit of {} files", spec.max_files));
        } else {
            candidates.refuse(
                &name,
                &format!("over the limit of {} bytes in total", spec.max_total_bytes),
            );
        }
    }
    let threads = if quota.used_bytes >= PARALLEL_READ_MIN_BYTES && accepted.len() > 1 {
        2
    } else {
        1
    };
    let results = {
        let _span = (spec.inline || spec.inline_binary)
            .then(|| tracing::info_span!("workspace.inline", files = accepted.len()).entered());
        let reader = FileReader {
            workspace,
            spec,
            device,
            inline: InlineAllowance::new(spec.max_inline_bytes),
        };
        reader.read_files(&accepted, threads)
    };
    let mut files = Vec::with_capacity(accepted.len());
    for ((name, _), result) in accepted.iter().zip(results) {
        match result {
            Ok(collected) => files.push(collected),
            Err(reason) => candidates.refuse(name, &reason),
        }
    }
    // The order of a directory listing is arbitrary, and it differs between executors.
    candidates.refused.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(Outputs {
        files,
        refused: candidates.refused,
        unnamed_refusals: candidates.unnamed_refusals,
        is_file_limit_reached: has_excess_files,
        is_byte_limit_reached: has_excess_bytes,
        unchanged: candidates.unchanged,
    })
}

/// Decides which files fit into the limits. Callers ask in the order of the file names. The Docker executor asks as
/// well, to decide which files to transfer.
#[derive(Debug)]
pub(crate) struct FileQuota {
    files_left: usize,
    used_bytes: u64,
    max_bytes: u64,
}

impl FileQuota {
    pub(crate) fn new(spec: &CollectionSpec) -> Self {
        Self {
            files_left: spec.max_files,
            used_bytes: 0,
            max_bytes: spec.max_total_bytes,
        }
    }

    /// Counts a file of this size. Returns false, and counts nothing, if it would exceed a limit.
    pub(crate) fn try_reserve(&mut self, size: u64) -> bool {
        let bytes = self.used_bytes.saturating_add(size);
        if self.files_left == 0 || bytes > self.max_bytes {
            return false;
        }
        self.files_left -= 1;
        self.used_bytes = bytes;
        true
    }

    /// Whether the limit on the number of files is reached.
    fn is_file_limit_reached(&self) -> bool {
        self.files_left == 0
    }
}

/// Reads the collected files of one run.
struct FileReader<'a> {
    workspace: &'a Workspace,
    spec: &'a CollectionSpec,
    device: u64,
    inline: InlineAllowance,
}

impl FileReader<'_> {
    /// Reads the accepted files on one or more threads. The results are in the order of `accepted`.
    fn read_files(&self, accepted: &[(RelPath, u64)], threads: usize) -> Vec<Result<CollectedFile, String>> {
        if threads == 1 {
            return accepted.iter().map(|(name, _)| self.read_file(name)).collect();
        }
        let next = std::sync::atomic::AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some((name, _)) = accepted.get(index) else { break };
                        let result = self.read_file(name);
                        results
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .push((index, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn read_file(&self, name: &RelPath) -> Result<CollectedFile, String> {
        let failed = |error: Errno| format!("cannot be opened: {error}");
        let (parent, last) = self.workspace.open_parent(name).map_err(failed)?;
        let opened = match nofollow::open_child_file(parent.as_fd(), last) {
            Err(Errno::ACCESS) => {
                // The script made its file unreadable. No process of the run is left, so changing the mode is safe.
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::chmodat(&parent, last, mode, rustix::fs::AtFlags::empty()).map_err(failed)?;
                nofollow::open_child_file(parent.as_fd(), last).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        // The opened file is checked again, because the entry may have been replaced since it was found.
        let stat = rustix::fs::fstat(&opened).map_err(failed)?;
        if let Some(reason) = refusal_reason(&stat, self.device) {
            return Err(reason.to_owned());
        }
        let mut file = File::from(opened);
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let text_name = name.to_string();
        let content = content::read(&mut file, &text_name, size, self.spec, &self.inline)
            .map_err(|error| format!("cannot be read: {error}"))?;
        Ok(CollectedFile {
            name: name.clone(),
            size_bytes: content.size,
            digest: content.digest,
            mime_type: content.mime_type,
            content: content.inline,
            encoding: content.encoding,
            truncated: content.truncated,
            file: self.spec.keep_open.then_some(file),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use skillbox_model::{Limits, RunId, RunRequest};

    use super::*;
    use crate::job::{JobSpec, ProfileBounds};
    use crate::workspace::{Backing, BaselineContent};

    fn spec(globs: &[&str], change: impl FnOnce(&mut skillbox_model::OutputSpec)) -> CollectionSpec {
        let mut outputs = skillbox_model::OutputSpec {
            globs: globs.iter().map(|glob| (*glob).to_owned()).collect(),
            ..Default::default()
        };
        change(&mut outputs);
        let request = RunRequest {
            skill: "s".into(),
            command: Some("true".into()),
            outputs: Some(outputs),
            ..Default::default()
        };
        let second = std::time::Duration::from_secs(1);
        let size = skillbox_model::ByteSize::mib(1);
        let limits = Limits {
            wall: second,
            cpu: second,
            cpu_quota_millis: None,
            memory: size,
            pids: 1,
            open_files: 1,
            file: size,
            workspace: size,
            workspace_inodes: 1,
            output: size,
        };
        let bounds = ProfileBounds {
            limits,
            max_wall: second,
            caps: crate::job::RequestCaps::default(),
        };
        JobSpec::parse(&request, RunId::parse("r1").unwrap(), &bounds)
            .unwrap()
            .collection
    }

    fn workspace(path: &Path) -> Workspace {
        fs::create_dir_all(path.join("out")).unwrap();
        Workspace::new(File::open(path).unwrap().into(), None, Backing::Disk)
    }

    fn collect_all(workspace: &Workspace, spec: &CollectionSpec) -> rustix::io::Result<Outputs> {
        collect(workspace, spec, &Baseline::default())
    }

    fn names(outputs: &Outputs) -> Vec<String> {
        outputs.files.iter().map(|file| file.name.to_string()).collect()
    }

    fn reasons(outputs: &Outputs) -> Vec<(&str, &str)> {
        outputs
            .refused
            .iter()
            .map(|refused| (refused.name.as_str(), refused.reason.as_str()))
            .collect()
    }

    #[test]
    fn files_are_collected_with_type_and_digest() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        fs::write(directory.path().join("out/b.txt"), "b").unwrap();
        fs::write(directory.path().join("out/a.bin"), b"\0\xff").unwrap();
        let outputs = collect_all(&workspace, &spec(&["out/**"], |_| {})).unwrap();
        assert_eq!(names(&outputs), ["out/a.bin", "out/b.txt"]);
        assert_eq!(
            (outputs.files[0].content.as_deref(), outputs.files[1].content.as_deref()),
            (None, Some("b"))
        );
        assert_eq!(
            outputs.files[1].digest.hex(),
            "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
        );
        let outputs = collect_all(&workspace, &spec(&["out/*"], |outputs| outputs.inline_binary = true)).unwrap();
        assert_eq!(outputs.files[0].content.as_deref(), Some("AP8="));
    }

    #[test]
    fn everything_but_single_linked_regular_files_is_refused_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        let out = directory.path().join("out");
        fs::write(directory.path().join("canary"), "secret").unwrap();
        std::os::unix::fs::symlink("../canary", out.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", out.join("linked-dir")).unwrap();
        fs::hard_link(directory.path().join("canary"), out.join("hard")).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            out.join("fifo"),
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(out.join("socket")).unwrap();
        fs::write(out.join("good"), "good").unwrap();
        let outputs = collect_all(&workspace, &spec(&["out/**"], |_| {})).unwrap();
        assert_eq!(names(&outputs), ["out/good"]);
        assert_eq!(
            reasons(&outputs),
            [
                ("out/fifo", "a FIFO"),
                ("out/hard", "has more than one hard link"),
                ("out/link", "a symbolic link"),
                ("out/linked-dir", "a symbolic link"),
                ("out/socket", "a socket"),
            ]
        );
    }

    #[test]
    fn an_output_directory_that_became_a_link_is_not_entered() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        fs::remove_dir(directory.path().join("out")).unwrap();
        std::os::unix::fs::symlink("/etc", directory.path().join("out")).unwrap();
        let outputs = collect_all(&workspace, &spec(&["out/**", "out/hostname"], |_| {})).unwrap();
        assert!(outputs.files.is_empty());
        assert_eq!(reasons(&outputs), [("out", "not a directory, or behind a link")]);
    }

    #[test]
    fn limits_are_exact() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        for name in ["a", "b", "c"] {
            fs::write(directory.path().join("out").join(name), "1234").unwrap();
        }
        let outputs = collect_all(&workspace, &spec(&["out/*"], |outputs| outputs.max_files = 2)).unwrap();
        assert_eq!(
            (names(&outputs), reasons(&outputs)),
            (
                vec!["out/a".into(), "out/b".into()],
                vec![("out/c", "over the limit of 2 files")]
            )
        );
        let outputs = collect_all(&workspace, &spec(&["out/*"], |outputs| outputs.max_total_bytes = 8)).unwrap();
        assert_eq!(names(&outputs).len(), 2);
        let outputs = collect_all(&workspace, &spec(&["out/*"], |outputs| outputs.max_total_bytes = 12)).unwrap();
        assert_eq!(names(&outputs).len(), 3);
        let outputs = collect_all(&workspace, &spec(&["out/a"], |outputs| outputs.max_file_bytes = 3)).unwrap();
        assert_eq!(
            (outputs.files[0].content.as_deref(), outputs.files[0].truncated),
            (Some("123"), true)
        );
        assert_eq!(outputs.files[0].size_bytes, 4);
        let outputs = collect_all(&workspace, &spec(&["out/a"], |outputs| outputs.max_file_bytes = 4)).unwrap();
        assert!(!outputs.files[0].truncated);
    }

    #[test]
    fn a_huge_sparse_file_is_refused_unread_and_many_files_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        let out = directory.path().join("out");
        File::create(out.join("0-sparse")).unwrap().set_len(1 << 40).unwrap();
        for index in 0..500 {
            fs::write(out.join(format!("f{index:03}")), "").unwrap();
        }
        let outputs = collect_all(&workspace, &spec(&["out/*"], |outputs| outputs.max_files = 10)).unwrap();
        assert_eq!(outputs.files.len(), 10);
        assert!(outputs.refused.iter().any(|refused| refused.name == "out/0-sparse"));
        assert_eq!(outputs.refused.len() as u64 + outputs.unnamed_refusals, 491);
    }

    #[test]
    fn unreadable_modes_do_not_hide_outputs() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        let inner = directory.path().join("out/inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), "x").unwrap();
        fs::set_permissions(inner.join("file"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o000)).unwrap();
        let outputs = collect_all(&workspace, &spec(&["out/**"], |_| {})).unwrap();
        assert_eq!(names(&outputs), ["out/inner/file"]);
    }

    #[test]
    fn very_deep_trees_end_with_a_refusal() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        let deep = directory.path().join("out").join("d/".repeat(80));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("x"), "x").unwrap();
        let outputs = collect_all(&workspace, &spec(&["out/**"], |_| {})).unwrap();
        assert!(outputs.files.is_empty());
        assert_eq!(outputs.refused[0].reason, "nested too deeply");
    }

    #[test]
    fn large_outputs_are_read_on_two_threads_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        for index in 0..20 {
            fs::write(directory.path().join(format!("out/{index:02}")), vec![b'x'; 512 << 10]).unwrap();
        }
        let outputs = collect_all(&workspace, &spec(&["out/*"], |outputs| outputs.save = true)).unwrap();
        let names = names(&outputs);
        assert_eq!(names.len(), 20);
        assert!(names.is_sorted());
        assert!(outputs.files.iter().all(|file| file.file.is_some()));
    }

    #[test]
    fn files_that_a_run_does_not_touch_are_listed_apart() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        let out = directory.path().join("out");
        for name in ["appended", "kept", "replaced", "rewritten"] {
            fs::write(out.join(name), "1234").unwrap();
        }
        for content in [BaselineContent::Identity, BaselineContent::Digest] {
            let spec = spec(&["out/*"], |_| {});
            let baseline = Baseline::record(&workspace, &spec.globs, content).unwrap();
            fs::write(out.join("rewritten"), "5678").unwrap();
            fs::write(out.join("new"), "1234").unwrap();
            fs::write(out.join("temporary"), "9999").unwrap();
            fs::rename(out.join("temporary"), out.join("replaced")).unwrap();
            let mut appended = fs::OpenOptions::new().append(true).open(out.join("appended")).unwrap();
            std::io::Write::write_all(&mut appended, b"5").unwrap();
            let outputs = collect(&workspace, &spec, &baseline).unwrap();
            assert_eq!(
                names(&outputs),
                ["out/appended", "out/new", "out/replaced", "out/rewritten"]
            );
            assert_eq!(outputs.unchanged, ["out/kept"]);
            for name in ["replaced", "rewritten"] {
                fs::write(out.join(name), "1234").unwrap();
            }
            fs::remove_file(out.join("new")).unwrap();
        }
    }
}
