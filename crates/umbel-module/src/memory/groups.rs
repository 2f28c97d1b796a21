//! The memory that the control groups of this process have left: in a container, the machine has more memory
//! than the process may use. No function here allocates, because allocators call them.

use super::read;
use core::fmt::{self, Write};

/// The root of the control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// The smallest remaining memory of all groups of this process; `None` if none has a limit.
pub(super) fn left() -> Option<u64> {
    let mut text = [0; 2_048];
    left_of(ROOT, read("/proc/self/cgroup", &mut text)?)
}

/// The names of files in one of the two versions of control groups.
struct Version {
    /// The folder of groups below the root.
    folder: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The pages of files that the kernel can give up, as `memory.stat` names them.
    files: &'static str,
}

const FIRST: Version = Version {
    folder: "/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    files: "total_inactive_file ",
};

const SECOND: Version =
    Version { folder: "", limit: "memory.max", usage: "memory.current", files: "inactive_file " };

/// The smallest remaining memory, for the content of `/proc/self/cgroup`.
fn left_of(root: &str, groups: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let version = match controllers {
            "" => SECOND,
            _ if controllers.split(',').any(|name| name == "memory") => FIRST,
            _ => return None,
        };
        least(root, &version, group)
    };
    groups.lines().filter_map(of_line).min()
}

/// The smallest remaining memory of a group and its ancestors. A container may see its own group as the root,
/// under a name that does not exist there, so a missing folder is not an error.
fn least(root: &str, version: &Version, group: &str) -> Option<u64> {
    let mut group = group.trim_end_matches('/');
    let mut least = None;
    loop {
        let left = left_to(root, version, group);
        least = [least, left].into_iter().flatten().min();
        match group.rfind('/') {
            Some(end) => group = &group[..end],
            None => return least,
        }
    }
}

fn left_to(root: &str, version: &Version, group: &str) -> Option<u64> {
    /// The first version represents "no limit" by values beyond this.
    const NONE: u64 = 1 << 60;
    let limit = number(root, version, group, version.limit).filter(|limit| *limit < NONE)?;
    let used = number(root, version, group, version.usage)?;
    let mut text = [0; 4_096];
    let files = Path::of(root, version, group, "memory.stat").and_then(|path| {
        let text = read(path.as_str(), &mut text)?;
        text.lines().find_map(|line| line.strip_prefix(version.files)?.parse::<u64>().ok())
    });
    Some(limit.saturating_sub(used.saturating_sub(files.unwrap_or(0))))
}

fn number(root: &str, version: &Version, group: &str, file: &str) -> Option<u64> {
    let mut text = [0; 64];
    read(Path::of(root, version, group, file)?.as_str(), &mut text)?.trim().parse().ok()
}

/// A path, on the stack.
struct Path {
    bytes: [u8; 360],
    len: usize,
}

impl Path {
    /// `None` if the path is too long, or leaves the group.
    fn of(root: &str, version: &Version, group: &str, file: &str) -> Option<Self> {
        let mut path = Self { bytes: [0; 360], len: 0 };
        write!(path, "{root}{}{group}/{file}", version.folder).ok()?;
        (!group.contains("/..")).then_some(path)
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().to_str().unwrap().to_owned();
        (folder, root)
    }

    #[test]
    fn the_group_with_the_least_decides() {
        let (_folder, root) = tree(&[
            ("pods/memory.max", "1000\n"),
            ("pods/memory.current", "900\n"),
            ("pods/memory.stat", "anon 100\nfile 700\ninactive_file 650\nactive_file 50\n"),
            ("pods/one/memory.max", "max\n"),
            ("pods/one/memory.current", "500\n"),
            ("pods/two/memory.max", "600\n"),
            ("pods/two/memory.current", "500\n"),
        ]);
        assert_eq!(left_of(&root, "0::/pods/one\n"), Some(750));
        assert_eq!(left_of(&root, "0::/pods/two\n"), Some(100));
        assert_eq!(left_of(&root, "0::/elsewhere\n"), None);
        assert_eq!(left_of(&root, "0::/\n"), None);
        assert_eq!(left_of(&root, "0::/elsewhere/../pods\n"), None);
    }

    #[test]
    fn a_container_that_does_not_see_its_name_has_the_limits_of_the_root() {
        let (_folder, root) =
            tree(&[("memory.max", "4096\n"), ("memory.current", "96\n"), ("memory.stat", "")]);
        assert_eq!(left_of(&root, "0::/kubepods/pod7/c1\n"), Some(4_000));
    }

    #[test]
    fn the_first_version_is_read_too() {
        let (_folder, root) = tree(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "1\n"),
            ("memory/docker/c1/memory.limit_in_bytes", "5000\n"),
            ("memory/docker/c1/memory.usage_in_bytes", "6000\n"),
            ("memory/docker/c1/memory.stat", "inactive_file 1\ntotal_inactive_file 3000\n"),
        ]);
        let groups = "5:cpu,cpuacct:/docker/c1\n4:memory:/docker/c1\n0::/\n";
        assert_eq!(left_of(&root, groups), Some(2_000));
        assert_eq!(left_of(&root, "4:memory:/docker\n"), None);
        assert_eq!(left_of(&root, "nonsense\n:\n\n"), None);
    }

    #[test]
    fn names_that_are_too_long_are_no_limit() {
        let name = format!("0::/{}\n", "a".repeat(400));
        assert_eq!(left_of("/nowhere", &name), None);
    }
}
