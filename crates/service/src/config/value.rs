//! How values are read from and printed to properties text.

/// A type that a configuration key can have.
pub trait Value: Clone + PartialEq + Send + Sync + 'static {
    /// The type in Java's words, for the documentation.
    const KIND: &'static str;
    /// Reads trimmed text; the error says what was expected.
    fn read(text: &str) -> Result<Self, String>;
    /// The text that [`Value::read`] takes back; `None` for an unset value.
    fn print(&self) -> Option<String>;
}

macro_rules! integers {
    ($($type:ty => $kind:literal),*) => { $(
        impl Value for $type {
            const KIND: &'static str = $kind;
            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!("an integer from {} to {}", <$type>::MIN, <$type>::MAX))
            }
            fn print(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )* };
}

integers!(u16 => "int", u32 => "int", i32 => "int", u64 => "long", i64 => "long", usize => "int");

impl Value for bool {
    const KIND: &'static str = "boolean";
    fn read(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("true") {
            Ok(true)
        } else if text.eq_ignore_ascii_case("false") {
            Ok(false)
        } else {
            Err("true or false".to_string())
        }
    }
    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for f64 {
    const KIND: &'static str = "double";
    fn read(text: &str) -> Result<Self, String> {
        text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| "a number".to_string())
    }
    fn print(&self) -> Option<String> {
        // as Java prints doubles: 1.0, not 1
        Some(format!("{self:?}"))
    }
}

impl Value for String {
    const KIND: &'static str = "String";
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_string())
    }
    fn print(&self) -> Option<String> {
        Some(self.clone())
    }
}

/// Java's `null` until set; empty text unsets it.
impl<T: Value> Value for Option<T> {
    const KIND: &'static str = T::KIND;
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }
    fn print(&self) -> Option<String> {
        self.as_ref().and_then(Value::print)
    }
}

/// Declares an enumeration whose values are Java's words.
#[macro_export]
macro_rules! config_enum {
    ($(#[doc = $enum_doc:literal])* pub enum $name:ident { $($(#[doc = $doc:literal])* $word:literal $variant:ident),+ $(,)? }) => {
        $(#[doc = $enum_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[doc = $doc])* $variant),+ }

        impl $name {
            /// Java's word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl $crate::config::Value for $name {
            const KIND: &'static str = $crate::config_enum!(@words $($word)+);
            fn read(text: &str) -> Result<Self, String> {
                match text { $($word => Ok(Self::$variant),)+ _ => Err(format!("one of {}", Self::KIND)) }
            }
            fn print(&self) -> Option<String> {
                Some(self.as_str().to_string())
            }
        }
    };
    (@words $first:literal $($more:literal)*) => { concat!($first $(, " / ", $more)*) };
}
