//! Small skills as manifests and as directories.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use skillbox_model::{Digest, Grants, HostPort, RelPath, SecretName, SkillName};
use skillbox_trust::{FileKind, ManifestFile, SkillManifest};

pub fn skill_name(name: &str) -> SkillName {
    SkillName::parse(name).unwrap()
}

pub fn sha256(bytes: &[u8]) -> Digest {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    Digest::from_sha256(hash.as_ref().try_into().unwrap())
}

pub fn manifest(files: &[(&str, &str)]) -> SkillManifest {
    SkillManifest::new(files.iter().map(|(path, content)| ManifestFile {
        path: RelPath::parse(path).unwrap(),
        kind: FileKind::File,
        sha256: sha256(content.as_bytes()),
    }))
    .unwrap()
}

pub fn network(hosts: &[&str]) -> Grants {
    Grants {
        network: hosts.iter().map(|host| HostPort::parse(host).unwrap()).collect(),
        ..Grants::default()
    }
}

pub fn secrets(names: &[&str]) -> Grants {
    Grants {
        secrets: names.iter().map(|name| SecretName::parse(name).unwrap()).collect(),
        ..Grants::default()
    }
}

/// Writes a small skill.
pub fn write_skill(directory: &Path) {
    fs::create_dir_all(directory.join("scripts")).unwrap();
    fs::write(
        directory.join("SKILL.md"),
        "---\nname: report\ndescription: Reports.\n---\n",
    )
    .unwrap();
    fs::write(directory.join("scripts/run.sh"), "#!/bin/sh\necho report\n").unwrap();
    fs::set_permissions(directory.join("scripts/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The manifest of a directory on disk.
pub fn read_manifest(directory: &Path) -> SkillManifest {
    let mut files = Vec::new();
    collect(directory, directory, &mut files);
    SkillManifest::new(files).unwrap()
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<ManifestFile>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            collect(root, &path, files);
            continue;
        }
        let (kind, content) = if metadata.is_symlink() {
            (
                FileKind::Link,
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            )
        } else if metadata.permissions().mode() & 0o100 != 0 {
            (FileKind::Executable, fs::read(&path).unwrap())
        } else {
            (FileKind::File, fs::read(&path).unwrap())
        };
        files.push(ManifestFile {
            path: RelPath::parse(path.strip_prefix(root).unwrap().as_os_str().as_encoded_bytes()).unwrap(),
            kind,
            sha256: sha256(&content),
        });
    }
}
