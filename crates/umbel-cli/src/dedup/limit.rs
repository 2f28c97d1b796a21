//! How much memory a run may take.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Bytes that a run takes besides what it remembers: the program, 8 MiB of it or 18 in builds for tests, and records while they are
/// read and written. A third of a small limit.
const BESIDES: u64 = 24 << 20;
/// The limit on systems that do not tell how much they have.
const UNKNOWN: u64 = 1 << 30;

/// What may be remembered within this much memory.
pub(super) fn for_keys(memory: u64) -> u64 {
    memory - (memory / 3).min(BESIDES)
}

/// Half of what the system can give now: the least of free memory, the limits of the control groups, and the address space and data
/// that the process may still take.
pub(super) fn of_system() -> u64 {
    given(Path::new("/")).map_or(UNKNOWN, |bytes| bytes / 2)
}

/// What the system can give, with its files below this directory.
fn given(root: &Path) -> Option<u64> {
    let proc = root.join("proc");
    let limits = [free(&proc), groups(root), left(&proc)];
    limits.into_iter().flatten().min()
}

/// Memory that programs can have without others being swapped out.
fn free(proc: &Path) -> Option<u64> {
    kilobytes(&read_to_string(proc.join("meminfo")).ok()?, "MemAvailable:")
}

/// The number behind a name in a file of `/proc`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the control groups that the process is in, of version 2 and of version 1.
fn groups(root: &Path) -> Option<u64> {
    let text = read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        let (top, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let top = root.join(top);
        let mut at: PathBuf = top.join(group.trim_start_matches('/'));
        let mut least = None::<u64>;
        // In a container the path may be one that is outside of it: then only the top is there.
        while at.starts_with(&top) {
            let limit = read_to_string(at.join(file)).ok();
            let limit = limit.and_then(|text| text.trim().parse().ok());
            least = least.into_iter().chain(limit).min();
            if !at.pop() {
                break;
            }
        }
        least
    });
    limits.min()
}

/// What `ulimit -v` and `ulimit -d` leave.
fn left(proc: &Path) -> Option<u64> {
    let limits = read_to_string(proc.join("self/limits")).ok()?;
    let status = read_to_string(proc.join("self/status")).ok()?;
    let left = |limit: &str, used: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        let soft: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(soft.saturating_sub(kilobytes(&status, used)?))
    };
    let all = [left("Max address space", "VmSize:"), left("Max data size", "VmData:")];
    all.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A system of these files.
    fn system(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::TempDir::new().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        given(root.path())
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:       16000 kB\nMemAvailable:    8000 kB\nBuffers: 5 kB\n");

    #[test]
    fn the_least_limit_counts() {
        assert_eq!(system(&[]), None);
        assert_eq!(system(&[MEMINFO]), Some(8000 << 10));
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let (a, b) = ("sys/fs/cgroup/a/memory.max", "sys/fs/cgroup/a/b/memory.max");
        assert_eq!(system(&[MEMINFO, group, (a, "max\n"), (b, "5000000\n")]), Some(5_000_000));
        assert_eq!(system(&[MEMINFO, group, (a, "4000000\n"), (b, "max\n")]), Some(4_000_000));
        assert_eq!(system(&[MEMINFO, group, (a, "9999999999\n")]), Some(8000 << 10));
        // In a container, the path is one of the host, and the limit is at the top.
        let top = "sys/fs/cgroup/memory.max";
        assert_eq!(
            system(&[MEMINFO, ("proc/self/cgroup", "0::/../x\n"), (top, "3000000")]),
            Some(3_000_000)
        );
        let old = ("proc/self/cgroup", "5:cpu:/c\n4:hugetlb,memory:/c\n");
        let limit = ("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "2000000\n");
        assert_eq!(system(&[MEMINFO, old, limit]), Some(2_000_000));
    }

    #[test]
    fn limits_of_the_shell_count_what_is_taken_already() {
        let status = ("proc/self/status", "VmSize:\t    1000 kB\nVmData:\t     200 kB\n");
        let limits = |space: &str, data: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax data size             {data}   unlimited  bytes\nMax address space         {space}   unlimited  bytes\n"
            )
        };
        let none = limits("unlimited", "unlimited");
        assert_eq!(system(&[MEMINFO, status, ("proc/self/limits", &none)]), Some(8000 << 10));
        let space = limits("4096000", "unlimited");
        assert_eq!(system(&[MEMINFO, status, ("proc/self/limits", &space)]), Some(3000 << 10));
        let data = limits("4096000", "1024000");
        assert_eq!(system(&[MEMINFO, status, ("proc/self/limits", &data)]), Some(800 << 10));
        let none = limits("100", "unlimited");
        assert_eq!(system(&[MEMINFO, status, ("proc/self/limits", &none)]), Some(0));
    }

    #[test]
    fn keys_leave_room_for_the_rest() {
        assert_eq!(for_keys(66), 44);
        assert_eq!(for_keys(66 << 20), 44 << 20);
        assert_eq!(for_keys(1 << 30), (1 << 30) - BESIDES);
    }
}
