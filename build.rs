//! Sets the linker flags a Node addon needs; without the `binding` feature there is nothing to do.

fn main() {
    // Nothing else is looked at. Without this cargo would look at every file, those that a build writes included.
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "binding")]
    napi_build::setup();
}
