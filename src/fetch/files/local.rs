//! A local or mounted directory.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::tree::is_looked_into;
use super::{Entry, EntryKind, Files, FilesError, Listing};

/// Files of a directory, or one file.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    root: PathBuf,
    /// The only file of `root` that is listed.
    only: Option<String>,
}

impl LocalFiles {
    /// `path` is a directory, or a single file.
    ///
    /// # Errors
    /// When there is nothing at `path`, or it is neither of the two.
    pub fn at(path: &Path) -> Result<Self, FilesError> {
        let display = path.display().to_string();
        let metadata =
            fs::metadata(path).map_err(|error| FilesError::io(display.clone(), &error))?;
        if metadata.is_dir() {
            return Ok(Self { root: path.to_owned(), only: None });
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match (metadata.is_file(), name) {
            (true, Some(name)) => {
                let root = path.parent().map(Path::to_owned).unwrap_or_default();
                Ok(Self { root, only: Some(name.to_owned()) })
            }
            _ => Err(FilesError::io(
                display,
                &io::Error::other("it is neither a file nor a directory"),
            )),
        }
    }

    /// A directory that need not be there yet: listing it says so then.
    pub fn directory(root: &Path) -> Self {
        Self { root: root.to_owned(), only: None }
    }

    /// Adds what is in `directory` (from the root; empty for the root).
    fn add(&self, directory: &str, listing: &mut Listing) -> io::Result<()> {
        for found in fs::read_dir(self.path_of(directory))? {
            let name = found?.file_name();
            let Some(name) = name.to_str() else {
                let name = format!("{directory}/{}", name.to_string_lossy());
                listing.unreadable.push((name, "its name is not UTF-8".to_owned()));
                continue;
            };
            let path =
                if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
            // Follows links: mounted folders are often full of them.
            let looked = fs::metadata(self.path_of(&path));
            let entry = looked.and_then(|metadata| entry(path.clone(), &metadata));
            match entry {
                Err(error) => listing.unreadable.push((path, error.to_string())),
                Ok(entry) => {
                    let deeper = entry.kind == EntryKind::Directory && is_looked_into(&path);
                    listing.push(entry);
                    if deeper && let Err(error) = self.add(&path, listing) {
                        listing.unreadable.push((path, error.to_string()));
                    }
                }
            }
        }
        Ok(())
    }

    fn path_of(&self, path: &str) -> PathBuf {
        if path.is_empty() && self.root.as_os_str().is_empty() {
            return PathBuf::from(".");
        }
        self.root.join(path)
    }
}

fn entry(path: String, metadata: &Metadata) -> io::Result<Entry> {
    let kind = if metadata.is_dir() { EntryKind::Directory } else { EntryKind::File };
    Ok(Entry { path, kind, bytes: metadata.len(), modified: metadata.modified()? })
}

impl Files for LocalFiles {
    fn list(&self) -> Result<Listing, FilesError> {
        let mut listing = Listing::default();
        let listed = match &self.only {
            None => self.add("", &mut listing),
            Some(name) => fs::metadata(self.path_of(name))
                .and_then(|metadata| entry(name.clone(), &metadata))
                .map(|entry| listing.push(entry)),
        };
        listed.map_err(|error| FilesError::io(self.display(""), &error))?;
        Ok(listing)
    }

    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let open = || {
            let mut file = File::open(self.path_of(path))?;
            if from > 0 {
                file.seek(SeekFrom::Start(from))?;
            }
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(FilesError::io(self.display(path), &error)),
        }
    }

    fn display(&self, path: &str) -> String {
        match &self.only {
            Some(name) if path.is_empty() => self.path_of(name),
            _ if path.is_empty() => self.root.clone(),
            _ => self.path_of(path),
        }
        .display()
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listing: &Listing) -> Vec<(&str, EntryKind)> {
        let mut names: Vec<_> =
            listing.entries.iter().map(|entry| (entry.path.as_str(), entry.kind)).collect();
        names.sort_by_key(|(path, _)| *path);
        names
    }

    #[test]
    fn the_root_and_the_directories_in_it() {
        let directory = tempfile::tempdir().expect("directory");
        let root = directory.path();
        fs::create_dir_all(root.join("a/b")).expect("directories");
        for name in ["x", "a/y", "a/b/z"] {
            fs::write(root.join(name), name).expect("file");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("link")).expect("link");
        let files = LocalFiles::at(root).expect("a directory");
        let listing = files.list().expect("a listing");
        assert_eq!(
            names(&listing),
            [
                ("a", EntryKind::Directory),
                ("a/b", EntryKind::Directory),
                ("a/y", EntryKind::File),
                ("x", EntryKind::File),
            ]
        );
        assert_eq!(listing.unreadable.len(), 1);
        assert_eq!(listing.unreadable[0].0, "link");

        let mut text = String::new();
        files.open("a/y", 2).expect("opens").read_to_string(&mut text).expect("reads");
        assert_eq!(text, "y");
        text.clear();
        files.open("a/y", 99).expect("opens").read_to_string(&mut text).expect("reads");
        assert_eq!(text, "", "beyond the end there is nothing");
    }

    #[test]
    fn one_file_is_a_place_too() {
        let directory = tempfile::tempdir().expect("directory");
        let file = directory.path().join("app-1");
        fs::write(&file, "{}").expect("file");
        fs::write(directory.path().join("app-2"), "{}").expect("file");
        let files = LocalFiles::at(&file).expect("a file");
        assert_eq!(names(&files.list().expect("a listing")), [("app-1", EntryKind::File)]);
        assert_eq!(files.display(""), file.display().to_string());
        assert_eq!(files.display("app-1"), file.display().to_string());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let directory = tempfile::tempdir().expect("directory");
        let missing = directory.path().join("gone");
        for error in [
            LocalFiles::at(&missing).expect_err("nothing there"),
            LocalFiles::directory(&missing).list().expect_err("nothing there"),
            LocalFiles::directory(directory.path()).open("gone", 0).err().expect("nothing there"),
        ] {
            assert_eq!(error.kind, super::super::FilesErrorKind::NotFound);
            assert!(error.to_string().contains("gone"), "{error}");
        }
    }
}
