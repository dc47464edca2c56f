//! The macros that declare keys.

/// Declares a struct of configuration keys.
///
/// ```
/// service::config! {
///     /// The keys of an example.
///     pub struct ExampleConfig {
///         /// Port to listen on.
///         "listenPort" listen_port: u16 = 10911, fixed, important;
///         /// Folder of the files; the text after `=>` is what the documentation shows as default.
///         "storePath" store_path: String = format!("{}/store", "/home/me") => "~/store", fixed;
///         /// Largest message.
///         "maxMessageSize" max_message_size: u32 = 4_194_304, live;
///     }
/// }
/// use service::config::Config;
/// let mut example = ExampleConfig::default();
/// assert_eq!(example.set("maxMessageSize", "5"), Ok(true));
/// assert_eq!(example.max_message_size, 5);
/// assert_eq!(example.get("listenPort").as_deref(), Some("10911"));
/// ```
#[macro_export]
macro_rules! config {
    (
        $(#[doc = $struct_doc:literal])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:literal $field:ident : $type:ty = $default:expr $(=> $shown:literal)?, $life:ident $(, $important:ident)?;
            )*
        }
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::config::Config for $name {
            fn keys() -> Vec<&'static $crate::config::Key> {
                static KEYS: &[$crate::config::Key] = &[$(
                    $crate::config::Key {
                        name: $key,
                        section: stringify!($name),
                        kind: <$type as $crate::config::Value>::KIND,
                        default: $crate::config!(@default $default $(=> $shown)?),
                        life: $crate::config::Life::$life,
                        important: $crate::config!(@important $($important)?),
                        doc: concat!($($doc, "\n"),+),
                    },
                )*];
                KEYS.iter().collect()
            }

            fn get(&self, key: &str) -> Option<String> {
                match key {
                    $($key => $crate::config::Value::print(&self.$field),)*
                    _ => None,
                }
            }

            fn set(&mut self, key: &str, value: &str) -> Result<bool, $crate::config::BadValue> {
                match key {
                    $($key => {
                        self.$field = $crate::config::Value::read(value.trim()).map_err(|expected| {
                            $crate::config::BadValue { key: $key, value: value.to_string(), expected }
                        })?;
                    })*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn copy_live(&mut self, from: &Self) {
                $(
                    if $crate::config::Life::$life == $crate::config::Life::live {
                        self.$field.clone_from(&from.$field);
                    }
                )*
            }
        }
    };
    (@default $default:expr => $shown:literal) => { $shown };
    (@default $default:expr) => { stringify!($default) };
    (@important important) => { true };
    (@important) => { false };
}

/// Declares the group of config structs that one file feeds.
#[macro_export]
macro_rules! config_group {
    (
        $(#[doc = $struct_doc:literal])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])* pub $member:ident : $type:ty,)+
        }
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])* pub $member: $type,)+
        }

        impl $crate::config::Config for $name {
            fn keys() -> Vec<&'static $crate::config::Key> {
                let mut keys = Vec::new();
                $(keys.extend(<$type as $crate::config::Config>::keys());)+
                keys
            }

            fn get(&self, key: &str) -> Option<String> {
                None$(.or_else(|| $crate::config::Config::get(&self.$member, key)))+
            }

            fn set(&mut self, key: &str, value: &str) -> Result<bool, $crate::config::BadValue> {
                let mut known = false;
                $(known |= $crate::config::Config::set(&mut self.$member, key, value)?;)+
                Ok(known)
            }

            fn copy_live(&mut self, from: &Self) {
                $($crate::config::Config::copy_live(&mut self.$member, &from.$member);)+
            }
        }
    };
}
