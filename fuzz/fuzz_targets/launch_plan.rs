//! Any bytes as what the launcher receives and as what it reports: parsing ends without a panic, takes no more than a
//! whole plan, and what was taken comes out the same when it is written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sallyport::isolation::channel::parse;
use sallyport::isolation::plan::{LARGEST_PLAN, read_report};

fuzz_target!(|received: &[u8]| {
    if let Ok(plan) = parse(received) {
        assert!(received.len() <= 4 + LARGEST_PLAN, "a plan larger than the limit was taken");
        let json = serde_json::to_vec(&plan).expect("a plan that was read can be written");
        let mut again = u32::try_from(json.len()).expect("a plan is small").to_be_bytes().to_vec();
        again.extend_from_slice(&json);
        assert_eq!(parse(&again).as_ref(), Ok(&plan));
    }
    let lines = received.split(|byte| *byte == b'\n').count();
    assert!(read_report(received).len() <= lines, "a line was made up");
});
