//! What a directory must hold to be Git's own: the one test for the boundaries above a path and for the data inside a
//! tree, so that both always agree.
//!
//! Each part must be what it is by itself, not through a link. Nothing here fails: what cannot be read is not there.

use super::format::{CONFIG_LIMIT, HEAD_LIMIT, config_has_core, head_is_valid};
use crate::fs::stream::read_small_file;
use crate::fs::{Directory, NodeType};

/// The names of the parts of a complete directory.
pub(super) const PARTS: [&[u8]; 4] = [b"HEAD", b"config", b"objects", b"refs"];

/// Whether a directory has a `HEAD` of the right form.
pub(super) fn has_valid_head(directory: &Directory) -> bool {
    read_small_file(directory, b"HEAD", HEAD_LIMIT).is_some_and(|content| head_is_valid(&content))
}

/// Whether a directory is complete (rule 3 of [`super`]).
pub(super) fn is_complete(directory: &Directory) -> bool {
    has_valid_head(directory)
        && read_small_file(directory, b"config", CONFIG_LIMIT).is_some_and(|content| config_has_core(&content))
        && [b"objects".as_slice(), b"refs"].iter().all(|name| is_directory(directory, name))
}

/// Whether a name is that of a directory.
pub(super) fn is_directory(directory: &Directory, name: &[u8]) -> bool {
    directory.metadata_of(name).is_ok_and(|metadata| metadata.node_type == NodeType::Directory)
}
