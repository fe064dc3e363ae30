//! Any bytes, cut anywhere, on the result descriptor: the reader keeps no more than its limit, takes exactly one frame,
//! and whatever is in it becomes a report in words, without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sallyport::isolation::plan::Layer;
use sallyport::sandbox::child::{ChildEnd, Exit, Fault};
use sallyport::sandbox::classify::Boundary;
use sallyport::sandbox::frame::FrameReader;
use sallyport::sandbox::result::{Expected, report};

const LARGEST: u64 = 4096;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (cut, bytes) = input;
    let mut reader = FrameReader::new(LARGEST);
    let taken = bytes.chunks(usize::from(cut).max(1)).try_for_each(|piece| reader.take(piece));
    let frame = taken.and_then(|()| reader.finish());
    if let Ok(frame) = &frame {
        assert!(frame.len() as u64 <= LARGEST, "more than the limit was kept");
        assert_eq!(frame.len() + 4, bytes.len(), "something besides one frame was taken");
    }
    // The same bytes as a body, so that the shapes are reached without a right length.
    for body in [frame.map_err(Fault::Frame), Ok(bytes)] {
        let end = ChildEnd {
            frame: body,
            exit: Some(Exit::Code(1)),
            began: true,
            stderr_tail: "stderr".to_owned(),
            launcher: Vec::new(),
        };
        for expected in [Expected::Run, Expected::Value] {
            let told = report(&end, expected, &Boundary::new(Vec::new(), vec![Layer::Landlock, Layer::Seccomp]), "label");
            serde_json::to_vec(&told).expect("a report can be written");
        }
    }
});
