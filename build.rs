//! Sets the linker flags a Node addon needs; without the `binding` feature there is nothing to do.

fn main() {
    #[cfg(feature = "binding")]
    napi_build::setup();
}
