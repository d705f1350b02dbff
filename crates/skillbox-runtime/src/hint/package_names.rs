//! The packages that provide the modules of Python and Node.

/// Modules of Python whose package has another name, among those that public skills import.
const PYTHON_PACKAGES: &[(&str, &str)] = &[
    ("Bio", "biopython"),
    ("Crypto", "pycryptodome"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyOpenSSL"),
    ("PIL", "Pillow"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("cairo", "pycairo"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "PyMuPDF"),
    ("frontmatter", "python-frontmatter"),
    ("git", "GitPython"),
    ("github", "PyGithub"),
    ("google.genai", "google-genai"),
    ("google.generativeai", "google-generativeai"),
    ("jose", "python-jose"),
    ("jwt", "PyJWT"),
    ("ldap", "python-ldap"),
    ("magic", "python-magic"),
    ("mpl_toolkits", "matplotlib"),
    ("msoffcrypto", "msoffcrypto-tool"),
    ("multipart", "python-multipart"),
    ("nacl", "PyNaCl"),
    ("pdfminer", "pdfminer.six"),
    ("pkg_resources", "setuptools"),
    ("pptx", "python-pptx"),
    ("psycopg2", "psycopg2-binary"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("slugify", "python-slugify"),
    ("telegram", "python-telegram-bot"),
    ("usb", "pyusb"),
    ("wx", "wxPython"),
    ("yaml", "PyYAML"),
    ("zmq", "pyzmq"),
];

/// Names that skills give their own modules. No package is suggested for them.
const OWN_PYTHON_MODULES: &[&str] = &[
    "common",
    "config",
    "constants",
    "core",
    "helpers",
    "lib",
    "models",
    "modules",
    "scripts",
    "shared",
    "src",
    "tests",
    "tools",
    "utils",
];

/// Where a missing module of Python comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PythonOrigin {
    /// A package that can be installed.
    Package(String),
    /// A part of the standard library that distributions package separately.
    StandardLibrary,
    /// A file of the skill.
    OwnFile,
}

/// The origin of a module, which may be dotted.
pub(super) fn python_origin(module: &str) -> PythonOrigin {
    let top = module.split('.').next().unwrap_or(module);
    let known = |name: &str| PYTHON_PACKAGES.iter().find(|(module, _)| *module == name);
    if let Some((_, package)) = known(module).or_else(|| known(top)) {
        return PythonOrigin::Package((*package).to_owned());
    }
    if [
        "tkinter",
        "_tkinter",
        "turtle",
        "ensurepip",
        "distutils",
        "curses",
        "lib2to3",
    ]
    .contains(&top)
    {
        PythonOrigin::StandardLibrary
    } else if OWN_PYTHON_MODULES.contains(&top) {
        PythonOrigin::OwnFile
    } else {
        PythonOrigin::Package(top.replace('_', "-"))
    }
}

/// The package of a module of Node; none for a path, which names a file.
pub(super) fn node_package(specifier: &str) -> Option<&str> {
    if specifier.starts_with(['.', '/']) {
        return None;
    }
    let components = if specifier.starts_with('@') { 2 } else { 1 };
    let end = specifier.match_indices('/').nth(components - 1);
    Some(end.map_or(specifier, |(index, _)| &specifier[..index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lead_to_packages() {
        let package = |name: &str| PythonOrigin::Package(name.to_owned());
        for (module, origin) in [
            ("numpy", package("numpy")),
            ("PIL.Image", package("Pillow")),
            ("google.genai", package("google-genai")),
            ("my_tool.sub", package("my-tool")),
            ("tkinter", PythonOrigin::StandardLibrary),
            ("utils.io", PythonOrigin::OwnFile),
        ] {
            assert_eq!(python_origin(module), origin, "{module}");
        }
        for (specifier, package) in [
            ("xlsx", Some("xlsx")),
            ("lodash/fp", Some("lodash")),
            ("@a/b/c", Some("@a/b")),
            ("@a/b", Some("@a/b")),
            ("./x", None),
            ("/abs/x.js", None),
        ] {
            assert_eq!(node_package(specifier), package, "{specifier}");
        }
    }

    #[test]
    fn the_tables_are_sorted_and_without_duplicates() {
        assert!(PYTHON_PACKAGES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(OWN_PYTHON_MODULES.is_sorted());
    }
}
