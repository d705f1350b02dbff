//! Starting a program without copying the address space, as posix_spawn(3) does it.
#![expect(
    unsafe_code,
    reason = "the new process runs on borrowed memory until it starts the program"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Enough for a handful of system calls and an unoptimised build's frames.
const STACK_BYTES: usize = 64 << 10;

/// A program to start.
pub(crate) struct Program<'a> {
    /// Paths to try, in order; a path that does not exist or cannot be executed leads to the next.
    pub paths: &'a [CString],
    pub argv: &'a [CString],
    pub env: &'a [CString],
    /// Descriptors that get a `0` written to them first: the `tasks` files of control groups.
    pub join: &'a [BorrowedFd<'a>],
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spawned {
    pub pid: i32,
    /// Why no path could be executed. The process has ended then.
    pub exec_error: Option<i32>,
    /// Why a control group could not be joined.
    pub join_error: Option<i32>,
}

/// What the new process reads and writes while it shares our memory.
struct Shared {
    paths: Vec<*const libc::c_char>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    join: Vec<libc::c_int>,
    join_is_required: bool,
    exec_error: libc::c_int,
    join_error: libc::c_int,
}

/// Starts a program in a new process with an empty signal mask, in a session of its own.
pub(crate) fn spawn(program: &Program<'_>, join_is_required: bool) -> io::Result<Spawned> {
    let mut shared = Shared {
        paths: program.paths.iter().map(|path| path.as_ptr()).collect(),
        argv: pointers(program.argv),
        env: pointers(program.env),
        join: program.join.iter().map(AsRawFd::as_raw_fd).collect(),
        join_is_required,
        exec_error: 0,
        join_error: 0,
    };
    let mut stack = vec![0_u8; STACK_BYTES];
    let top = stack.as_mut_ptr_range().end;
    let top = top.wrapping_sub(top as usize % 16);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the new process runs `run` on its own stack, which is large enough, grows down from an aligned top and
    // lives until the call returns; with CLONE_VFORK that is not before the process left our memory. `run` makes
    // system calls only: it allocates nothing, takes no lock and never returns into our frames.
    let pid = unsafe { libc::clone(run, top.cast(), flags, (&raw mut shared).cast()) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // The new process wrote to these while the compiler could not see it.
    // SAFETY: both are live fields of a local value.
    let (exec_error, join_error) = unsafe {
        (
            (&raw const shared.exec_error).read_volatile(),
            (&raw const shared.join_error).read_volatile(),
        )
    };
    let some = |errno: libc::c_int| (errno != 0).then_some(errno);
    Ok(Spawned {
        pid,
        exec_error: some(exec_error),
        join_error: some(join_error),
    })
}

/// The new process: join, go, or say why not.
extern "C" fn run(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passes a pointer to its own `Shared`, waits until this process is gone and touches nothing
    // meanwhile. Everything below is system calls on values that `spawn` prepared.
    unsafe {
        let shared = &mut *shared.cast::<Shared>();
        for descriptor in &shared.join {
            if libc::write(*descriptor, c"0".as_ptr().cast(), 1) < 0 {
                shared.join_error = *libc::__errno_location();
                if shared.join_is_required {
                    libc::_exit(126);
                }
            }
        }
        libc::setsid();
        unblock_signals();
        shared.exec_error = execute(&shared.paths, &shared.argv, &shared.env);
        libc::_exit(127)
    }
}

/// Turns this process into a program with an empty signal mask. Returns only the error of not being able to.
pub(crate) fn exec(paths: &[CString], argv: &[CString], env: &[CString]) -> i32 {
    let paths: Vec<_> = paths.iter().map(|path| path.as_ptr()).collect();
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end with a null pointer, and everything they point to lives until the call returns.
    unsafe {
        unblock_signals();
        execute(&paths, &argv, &env)
    }
}

/// Empties the signal mask: a program would inherit it.
///
/// # Safety
/// Nobody may count on a signal being blocked any more.
unsafe fn unblock_signals() {
    // SAFETY: the structure is valid when zeroed and outlives the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Tries the paths in turn.
///
/// # Safety
/// All are pointers to C strings that live, and the last two lists end with a null pointer.
unsafe fn execute(
    paths: &[*const libc::c_char],
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> libc::c_int {
    let mut why = libc::ENOENT;
    for path in paths {
        // SAFETY: as the caller vouches.
        let errno = unsafe {
            libc::execve(*path, argv.as_ptr(), env.as_ptr());
            *libc::__errno_location()
        };
        // As execvp(3) does it: a path without rights is remembered, a missing one is forgotten.
        match errno {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => why = errno,
            _ => return errno,
        }
    }
    why
}

/// A list as the kernel wants it.
fn pointers(list: &[CString]) -> Vec<*const libc::c_char> {
    list.iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

/// The paths that a program's name can mean, by the `PATH` of an environment.
pub(crate) fn candidates(name: &CStr, env: &[CString]) -> Vec<CString> {
    let bytes = name.to_bytes();
    if bytes.contains(&b'/') {
        return vec![name.to_owned()];
    }
    let path = env.iter().find_map(|pair| pair.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|byte| *byte == b':')
        .filter_map(|directory| {
            let directory = if directory.is_empty() { b"." } else { directory };
            CString::new([directory, b"/", bytes].concat()).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_taken() {
        let env = [c"A=b".to_owned(), c"PATH=/x::/y".to_owned()];
        assert_eq!(
            candidates(c"true", &env),
            [c"/x/true".to_owned(), c"./true".to_owned(), c"/y/true".to_owned()]
        );
        assert_eq!(candidates(c"./true", &env), [c"./true".to_owned()]);
        assert_eq!(candidates(c"true", &[]).len(), 3);
    }
}
