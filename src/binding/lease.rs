//! Leases in JavaScript: the class, the table that finds the lease of a handle, and the list by which a job finds one.
//!
//! The table is a `WeakMap` that the addon holds, one for each JavaScript environment: a test runner that evaluates the
//! package's modules again still finds the leases of handles made before.

#![allow(clippy::needless_pass_by_value, reason = "a value from JavaScript arrives owned")]
#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in a test build"))]

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use napi::bindgen_prelude::{Function, JsObjectValue, Object, ObjectRef, Unknown};
use napi::{Env, JsValue};
use napi_derive::napi;

use super::failure::internal;
use crate::mirror::Lease;

static LEASES: Mutex<Option<HashMap<u32, Weak<Lease>>>> = Mutex::new(None);
static NEXT: AtomicU32 = AtomicU32::new(1);

/// Finds the lease with this number, while its handle lives.
pub(super) fn find(id: u32) -> Option<Arc<Lease>> {
    LEASES.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&id)?.upgrade()
}

/// What holds a mirror while it is in use.
#[napi]
pub struct MirrorLease {
    id: u32,
    lease: Arc<Lease>,
}

impl MirrorLease {
    pub(super) fn new(lease: Lease) -> Self {
        let lease = Arc::new(lease);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        LEASES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(HashMap::new)
            .insert(id, Arc::downgrade(&lease));
        Self { id, lease }
    }
}

impl Drop for MirrorLease {
    fn drop(&mut self) {
        if let Some(leases) = LEASES.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            leases.remove(&self.id);
        }
    }
}

#[napi]
impl MirrorLease {
    /// The number by which a job finds it.
    #[napi(getter)]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether the mirror may still be used.
    #[napi(getter)]
    pub fn live(&self) -> bool {
        self.lease.is_live()
    }

    /// Ends it.
    #[napi(catch_unwind)]
    pub fn end(&self) {
        self.lease.end();
    }

    /// Whether it is live, belongs to this source and these protected roots, and the fields of a handle are its own.
    #[napi(catch_unwind)]
    pub fn matches(
        &self,
        host_mirror_root: String,
        guest_workspace_path: String,
        backend: String,
        source_root: String,
        protected_roots: Vec<String>,
    ) -> bool {
        let protected_roots: Vec<PathBuf> = protected_roots.into_iter().map(PathBuf::from).collect();
        self.lease.matches(
            &host_mirror_root,
            &guest_workspace_path,
            &backend,
            Path::new(&source_root),
            &protected_roots,
        )
    }

    /// What the mirror holds, as JSON.
    #[napi(catch_unwind)]
    pub fn report(&self) -> napi::Result<String, String> {
        serde_json::to_string(self.lease.report()).map_err(internal)
    }
}

thread_local! {
    static TABLE: RefCell<Option<ObjectRef<false>>> = const { RefCell::new(None) };
}

/// The `WeakMap` from handles to leases of this environment.
#[napi(catch_unwind, ts_return_type = "WeakMap<object, MirrorLease>")]
pub(crate) fn lease_table(env: &Env) -> napi::Result<Object<'_>> {
    TABLE.with_borrow_mut(|table| {
        if let Some(held) = table.as_ref() {
            return held.get_value(env);
        }
        let weak_map: Function<'_, (), Unknown<'_>> = env.get_global()?.get_named_property("WeakMap")?;
        let made = weak_map.new_instance(())?.coerce_to_object()?;
        *table = Some(made.create_ref()?);
        Ok(made)
    })
}
