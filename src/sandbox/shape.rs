//! Reading what a child sent without building more of it than is used.
//!
//! A frame has bounds, but a byte of JSON can become a hundred bytes of values: what is handed on unchanged is looked at
//! and kept as the text that it is, and of a list only as many elements are built as are taken. Fails with the parser's
//! errors.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

/// The first elements of a list. The others need only be JSON.
///
/// # Errors
/// It is no list; one of the first is no `T`.
pub fn first<'de, const MOST: usize, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct First<const MOST: usize, T>(PhantomData<T>);
    impl<'de, const MOST: usize, T: Deserialize<'de>> Visitor<'de> for First<MOST, T> {
        type Value = Vec<T>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut taken = Vec::new();
            while taken.len() < MOST {
                let Some(element) = list.next_element()? else { return Ok(taken) };
                taken.push(element);
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(taken)
        }
    }
    deserializer.deserialize_seq(First::<MOST, T>(PhantomData))
}

/// A string of which nothing is kept.
struct Text;

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;
        impl Visitor<'_> for Seen {
            type Value = Text;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_str<E>(self, _text: &str) -> Result<Text, E> {
                Ok(Text)
            }
        }
        deserializer.deserialize_str(Seen)
    }
}

/// The text of a list.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct ListText<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for ListText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('[') { Ok(Self(raw)) } else { Err(de::Error::custom("expected a list")) }
    }
}

/// The text of an object whose values are strings.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct TextsText<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for TextsText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = ();
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
                while fields.next_entry::<Text, Text>()?.is_some() {}
                Ok(())
            }
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        serde_json::Deserializer::from_str(raw.get()).deserialize_map(Texts).map_err(de::Error::custom)?;
        Ok(Self(raw))
    }
}

/// A field as text, a number as its digits; anything else is not there, and nothing of it is built. Project code sets
/// fields to what it likes, and one of another kind must not cost the rest of a report.
///
/// # Errors
/// It is no JSON.
pub fn lenient_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct Lenient;
    impl<'de> Visitor<'de> for Lenient {
        type Value = Option<String>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a value")
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(text.to_owned()))
        }
        fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
            Ok(Some(text))
        }
        fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
            Ok(Some(number.to_string()))
        }
        fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
            Ok(Some(number.to_string()))
        }
        fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
            // As JSON writes it; what has no JSON did not come from any.
            Ok(serde_json::Number::from_f64(number).map(|number| number.to_string()))
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            IgnoredAny.visit_seq(list).map(|_| None)
        }
        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
            IgnoredAny.visit_map(fields).map(|_| None)
        }
    }
    deserializer.deserialize_any(Lenient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Frame<'a> {
        #[serde(borrow)]
        list: ListText<'a>,
        #[serde(borrow)]
        texts: TextsText<'a>,
        #[serde(deserialize_with = "first::<2, _, _>")]
        numbers: Vec<u8>,
        #[serde(deserialize_with = "lenient_text")]
        text: Option<String>,
    }

    fn read(list: &str, texts: &str, numbers: &str, text: &str) -> Result<(String, Vec<u8>, Option<String>), String> {
        let json = format!(r#"{{"list":{list},"texts":{texts},"numbers":{numbers},"text":{text}}}"#);
        let frame: Frame<'_> = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        Ok((format!("{} {}", frame.list.0, frame.texts.0), frame.numbers, frame.text))
    }

    #[test]
    fn what_is_handed_on_is_what_came() {
        let (text, numbers, _) = read("[1, {}]", r#"{"a\u0041": "\n"}"#, "[1,2,\"no number\",{}]", "null").unwrap();
        assert_eq!((text.as_str(), numbers), (r#"[1, {}] {"a\u0041": "\n"}"#, vec![1, 2]));
    }

    #[test]
    fn what_has_another_shape_is_refused() {
        for (list, texts, numbers) in [
            ("{}", "{}", "[]"),
            ("\"[\"", "{}", "[]"),
            ("[]", "[]", "[]"),
            ("[]", r#"{"a":1}"#, "[]"),
            ("[]", r#"{"a":"\ud800"}"#, "[]"),
            ("[]", "null", "[]"),
            ("[]", "{}", "{}"),
            ("[]", "{}", "[1,\"2\"]"),
        ] {
            assert!(read(list, texts, numbers, "1").is_err(), "{list} {texts} {numbers}");
        }
    }

    #[test]
    fn a_field_is_a_text_or_not_there() {
        let text = |json| read("[]", "{}", "[]", json).unwrap().2;
        assert_eq!(text("\"a\\n\"").as_deref(), Some("a\n"));
        assert_eq!(text("-80").as_deref(), Some("-80"));
        assert_eq!(text("1.5").as_deref(), Some("1.5"));
        for other in ["null", "true", "[[1],2]", r#"{"a":{"b":1}}"#] {
            assert_eq!(text(other), None);
        }
    }
}
