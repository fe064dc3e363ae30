//! The result frame: a length of four bytes, then as many bytes of JSON, then the end.
//!
//! It comes from code that is not trusted, so it is bounded before anything is set aside for it, and a second frame is a
//! violation, not a choice. Fails with a [`FrameError`], in a sentence for a person.

/// What is wrong with what came on the result descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The result is too large.
    #[error("its result of {announced} bytes is larger than maxResultBytes={largest}")]
    TooLarge {
        /// The announced length in bytes.
        announced: u64,
        /// The limit in bytes.
        largest: u64,
    },
    /// The result is nested too deep.
    #[error("its result is nested more than {deepest} levels deep")]
    TooDeep {
        /// The limit.
        deepest: usize,
    },
    /// The result has too many values.
    #[error("its result has more than {most} values")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// Something came after the frame.
    #[error("it sent more than one result; something besides the driver wrote to the result descriptor")]
    MoreThanOne,
    /// The frame ended early.
    #[error("its result ended after {received} of {announced} bytes")]
    Truncated {
        /// The bytes that came.
        received: usize,
        /// The bytes that were announced.
        announced: u64,
    },
    /// The frame ended before its length was told.
    #[error("its result ended within the four bytes that tell its length")]
    Unannounced,
    /// Nothing came.
    #[error("it ended without a result")]
    Missing,
}

/// The deepest nesting of a result: more than entities and configurations are allowed to have.
pub const DEEPEST: usize = 2048;

/// The most values of a result. Reading JSON takes the caller's event loop time for each of them, however small.
pub const MOST_VALUES: usize = 4_000_000;

/// Bounds what reading a frame would cost, in one pass that builds nothing. Whether it is JSON is for the parser to say.
///
/// # Errors
/// Too deep; too many.
pub fn bound(frame: &[u8]) -> Result<(), FrameError> {
    let (mut depth, mut values, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in frame {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                (depth, values) = (depth + 1, values + 1);
                if depth > DEEPEST {
                    return Err(FrameError::TooDeep { deepest: DEEPEST });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if values > MOST_VALUES {
            return Err(FrameError::TooMany { most: MOST_VALUES });
        }
    }
    Ok(())
}

/// Collects a frame from pieces.
#[derive(Debug)]
pub struct FrameReader {
    largest: u64,
    header: Vec<u8>,
    body: Vec<u8>,
}

impl FrameReader {
    /// A reader that accepts at most this many bytes.
    #[must_use]
    pub fn new(largest: u64) -> Self {
        Self { largest, header: Vec::with_capacity(4), body: Vec::new() }
    }

    fn announced(&self) -> Option<u64> {
        let header: [u8; 4] = self.header.as_slice().try_into().ok()?;
        Some(u64::from(u32::from_be_bytes(header)))
    }

    /// Whether all of the frame is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.announced() == Some(self.body.len() as u64)
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// Too large; more than one.
    pub fn take(&mut self, mut piece: &[u8]) -> Result<(), FrameError> {
        let missing = 4 - self.header.len();
        let (header, rest) = piece.split_at(missing.min(piece.len()));
        self.header.extend_from_slice(header);
        piece = rest;
        let Some(announced) = self.announced() else { return Ok(()) };
        if announced > self.largest {
            return Err(FrameError::TooLarge { announced, largest: self.largest });
        }
        if self.body.len() as u64 + piece.len() as u64 > announced {
            return Err(FrameError::MoreThanOne);
        }
        self.body.extend_from_slice(piece);
        Ok(())
    }

    /// The frame, once nothing more can come.
    ///
    /// # Errors
    /// Truncated; unannounced; missing.
    pub fn finish(self) -> Result<Vec<u8>, FrameError> {
        match self.announced() {
            Some(announced) if announced == self.body.len() as u64 => Ok(self.body),
            Some(announced) => Err(FrameError::Truncated { received: self.body.len(), announced }),
            None if self.header.is_empty() => Err(FrameError::Missing),
            None => Err(FrameError::Unannounced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
    }

    proptest! {
        #[test]
        fn a_frame_comes_whole_however_it_is_cut(body: Vec<u8>, cuts in proptest::collection::vec(0_usize..20, 0..20)) {
            let bytes = framed(&body);
            let mut reader = FrameReader::new(1000);
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                reader.take(piece).unwrap();
                rest = after;
            }
            reader.take(rest).unwrap();
            prop_assert!(reader.is_complete());
            prop_assert_eq!(reader.finish().unwrap(), body);
        }
    }

    #[test]
    fn four_gigabytes_are_refused_before_they_come() {
        let mut reader = FrameReader::new(10);
        let refused = reader.take(&u32::MAX.to_be_bytes());
        assert_eq!(refused, Err(FrameError::TooLarge { announced: u64::from(u32::MAX), largest: 10 }));
    }

    #[test]
    fn what_costs_too_much_to_read_is_refused() {
        assert_eq!(bound("[\"[[[[\\\"[\"]".as_bytes()), Ok(()));
        assert_eq!(bound("[".repeat(DEEPEST + 1).as_bytes()), Err(FrameError::TooDeep { deepest: DEEPEST }));
        assert_eq!(bound("[]".repeat(DEEPEST + 1).as_bytes()), Ok(()));
        assert_eq!(bound("0,".repeat(MOST_VALUES + 1).as_bytes()), Err(FrameError::TooMany { most: MOST_VALUES }));
    }

    #[test]
    fn one_frame_and_no_more() {
        let mut reader = FrameReader::new(10);
        reader.take(&framed(b"{}")).unwrap();
        assert_eq!(reader.take(b"x"), Err(FrameError::MoreThanOne));
        let mut early = FrameReader::new(10);
        early.take(&framed(b"{}")[..5]).unwrap();
        assert_eq!(early.finish(), Err(FrameError::Truncated { received: 1, announced: 2 }));
        let mut earlier = FrameReader::new(8);
        earlier.take(&[0, 0]).unwrap();
        assert_eq!(earlier.finish(), Err(FrameError::Unannounced));
        assert_eq!(FrameReader::new(10).finish(), Err(FrameError::Missing));
    }
}
