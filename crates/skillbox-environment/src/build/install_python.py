"""Installs packages of Python into an environment. Runs inside the sandbox of a build; reads its task from stdin.

No code of a package runs here: only wheels are installed, and the interpreter that compiles them does not have them on its path.
"""

import glob
import json
import os
import platform
import subprocess
import sys
import sysconfig

STAGE = "/workspace/stage"
ENV = STAGE + "/env"
WORK = "/workspace/work"


def fail(message):
    print("skillbox: " + message, file=sys.stderr)
    sys.exit(3)


def pip_command(base):
    command = [base, "-I", "-m", "pip"]
    found = subprocess.run(command + ["--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if found.returncode == 0:
        return command, found.stdout.decode().split()[1]
    try:
        import ensurepip

        wheels = glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
    except ImportError:
        wheels = []
    if not wheels:
        fail("the interpreter %s has no pip, which installs packages" % base)
    version = os.path.basename(wheels[0]).split("-")[1]
    return [base, "-I", wheels[0] + "/pip"], version


def check_python(base, wanted):
    code = (
        "import sys; from pip._vendor.packaging.specifiers import SpecifierSet; "
        "sys.exit(0 if SpecifierSet(sys.argv[1]).contains(sys.argv[2]) else 1)"
    )
    found = subprocess.run([base, "-I", "-c", code, wanted, platform.python_version()])
    if found.returncode != 0:
        fail("it needs Python %s, and the interpreter of the sandbox is %s" % (wanted, platform.python_version()))


def install(base, pip, task):
    subprocess.run([base, "-I", "-m", "venv", "--without-pip", "--symlinks", ENV], check=True)
    requirements = WORK + "/requirements.txt"
    with open(requirements, "w") as file:
        file.write("\n".join(task["requirements"]) + "\n")
    command = pip + [
        "--python", ENV + "/bin/python3", "--isolated", "--no-input", "--disable-pip-version-check",
        "--timeout", "30", "--retries", "2",
        "install", "--no-cache-dir", "--no-compile", "--only-binary", ":all:", "--no-warn-script-location",
        "--progress-bar", "off", "--report", WORK + "/report.json", "--index-url", task["index"], "-r", requirements,
    ]  # fmt: skip
    for index in task["extra_indexes"]:
        command += ["--extra-index-url", index]
    for host in task["trusted_hosts"]:
        command += ["--trusted-host", host]
    if task["certificates"]:
        with open(WORK + "/ca.pem", "w") as file:
            file.write(task["certificates"])
        command += ["--cert", WORK + "/ca.pem"]
    installed = subprocess.run(command)
    if installed.returncode != 0:
        sys.exit(installed.returncode)
    with open(WORK + "/report.json") as file:
        return json.load(file)["install"]


def hash_of(item):
    info = item["download_info"].get("archive_info", {})
    hashes = info.get("hashes", {})
    if "sha256" in hashes:
        return "sha256:" + hashes["sha256"]
    return info.get("hash", "").replace("=", ":", 1)


def finish(base):
    """Gives the environment its final paths: it is mounted as /env."""
    bin_directory = ENV + "/bin"
    for name in os.listdir(bin_directory):
        path = os.path.join(bin_directory, name)
        if os.path.islink(path) or name.lower().startswith("activate"):
            os.unlink(path)
            continue
        with open(path, "rb") as file:
            content = file.read()
        prefix = ("#!" + bin_directory).encode()
        if content.startswith(prefix):
            with open(path, "wb") as file:
                file.write(b"#!/env/bin" + content[len(prefix):])
    os.symlink(base, bin_directory + "/python3")
    os.symlink("python3", bin_directory + "/python")
    os.symlink("python3", bin_directory + "/python%d.%d" % sys.version_info[:2])
    with open(ENV + "/pyvenv.cfg", "w") as file:
        file.write("home = %s\n" % os.path.dirname(base))
        file.write("include-system-site-packages = false\nversion = %s\n" % platform.python_version())
    # Bytecode that is never compared with the time of its source, so that it is valid wherever the files are copied.
    subprocess.run(
        [
            base, "-I", "-m", "compileall", "-q", "-j", "0", "-s", STAGE, "-p", "/",
            "--invalidation-mode", "unchecked-hash", ENV + "/lib",
        ],  # fmt: skip
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main():
    task = json.load(sys.stdin)
    os.makedirs(STAGE, exist_ok=True)
    base = os.path.realpath(sys.executable)
    pip, pip_version = pip_command(base)
    if tuple(int(part) for part in pip_version.split(".")[:2]) < (22, 3):
        fail("pip %s is too old; 22.3 or newer is needed" % pip_version)
    if task["requires_python"]:
        check_python(base, task["requires_python"])
    packages = [
        {"name": item["metadata"]["name"], "version": item["metadata"]["version"], "hash": hash_of(item)}
        for item in install(base, pip, task)
    ]
    finish(base)
    result = {
        "packages": packages,
        "interpreter": {
            "version": "%s %s" % (sys.implementation.name, platform.python_version()),
            "build": "%s %s" % (sysconfig.get_config_var("SOABI"), " ".join(sys.version.split())),
            "path": base,
        },
        "platform": "%s %s" % (sysconfig.get_platform(), " ".join(platform.libc_ver())),
        "tool": "pip " + pip_version,
    }
    with open(WORK + "/result.json", "w") as file:
        json.dump(result, file)


main()
