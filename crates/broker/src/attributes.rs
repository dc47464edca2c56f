//! Attributes of topics and groups: `+key=value` sets, `-key` removes, and some may not change once set.

use std::collections::BTreeMap;

type Map = BTreeMap<String, String>;

enum Values {
    OneOf(&'static [&'static str]),
    Number { min: i64, max: i64 },
}

/// What one attribute may hold.
pub struct Attribute {
    key: &'static str,
    changeable: bool,
    values: Values,
}

/// The attributes of a topic.
pub const TOPIC: &[Attribute] = &[
    Attribute { key: "queue.type", changeable: false, values: Values::OneOf(&["BatchCQ", "SimpleCQ"]) },
    Attribute { key: "cleanup.policy", changeable: false, values: Values::OneOf(&["DELETE", "COMPACTION"]) },
    Attribute {
        key: "message.type",
        changeable: true,
        values: Values::OneOf(&["UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "MIXED"]),
    },
    Attribute { key: "reserve.time", changeable: true, values: Values::Number { min: -1, max: i64::MAX } },
];

/// The attributes of a group.
pub const GROUP: &[Attribute] =
    &[Attribute { key: "priority.factor", changeable: true, values: Values::Number { min: 0, max: 100 } }];

/// Splits `+a=1,-b` into its changes, keyed with their sign.
pub fn parse(text: &str) -> Result<Map, String> {
    let mut changes = Map::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = match part.split_once('=') {
            Some((key, _)) if !key.contains('+') => {
                return Err(format!("add/alter attribute format is wrong: {key}"));
            }
            Some((key, value)) => (key, value),
            None if !part.contains('-') => return Err(format!("delete attribute format is wrong: {part}")),
            None => (part, ""),
        };
        if changes.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("key duplication: {key}"));
        }
    }
    Ok(changes)
}

/// Applies `changes` to `current`; `create` allows only additions. The error is the remark the asker gets.
pub fn alter(create: bool, all: &[Attribute], current: &Map, changes: &Map) -> Result<Map, String> {
    let mut result = current.clone();
    let mut seen: Vec<&str> = Vec::new();
    for (signed, value) in changes {
        let sign = signed.chars().next().unwrap_or(' ');
        let key = signed.get(sign.len_utf8()..).unwrap_or_default();
        if key.is_empty() || key.contains(['+', '-']) {
            return Err("kv string format wrong.".to_owned());
        }
        if seen.contains(&key) {
            return Err(format!("alter duplication key. key: {key}"));
        }
        seen.push(key);
        if create && sign != '+' {
            return Err(format!("only add attribute is supported while creating topic. key: {key}"));
        }
        if sign == '-' && !current.contains_key(key) {
            return Err(format!("attempt to delete a nonexistent key: {key}"));
        }
        if sign != '+' && sign != '-' {
            return Err(format!("wrong format key: {key}"));
        }
        let attribute = all.iter().find(|known| known.key == key).ok_or_else(|| format!("unsupported key: {key}"))?;
        if !create && !attribute.changeable {
            return Err(format!("attempt to update an unchangeable attribute. key: {key}"));
        }
        if sign == '-' {
            result.remove(key);
        } else {
            attribute.verify(value)?;
            result.insert(key.to_owned(), value.clone());
        }
    }
    Ok(result)
}

impl Attribute {
    fn verify(&self, value: &str) -> Result<(), String> {
        match self.values {
            Values::OneOf(known) if known.contains(&value) => Ok(()),
            Values::OneOf(known) => Err(format!("value is not in set: [{}]", known.join(", "))),
            Values::Number { min, max } => match value.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(()),
                Ok(_) => Err(format!("value is not in range({min}, {max})")),
                Err(_) => Err(format!("For input string: \"{value}\"")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Map {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn creation_adds_and_updates_change() {
        let changes = parse("+message.type=FIFO,+cleanup.policy=DELETE").unwrap();
        let made = alter(true, TOPIC, &Map::new(), &changes).unwrap();
        assert_eq!(made, map(&[("message.type", "FIFO"), ("cleanup.policy", "DELETE")]));
        let changed = alter(false, TOPIC, &made, &parse("+message.type=NORMAL").unwrap()).unwrap();
        assert_eq!(changed["message.type"], "NORMAL");
        assert_eq!(alter(false, TOPIC, &changed, &parse("-message.type").unwrap()).unwrap().len(), 1);
    }

    #[test]
    fn what_java_refuses_is_refused() {
        let made = map(&[("cleanup.policy", "DELETE")]);
        for (create, text) in [
            (true, "-message.type"),
            (true, "+message.type=SOMETHING"),
            (true, "+nonsense=1"),
            (true, "+queue.type=rocks"),
            (false, "+cleanup.policy=COMPACTION"),
            (false, "-message.type"),
            (true, "+reserve.time=-2"),
        ] {
            let changes = parse(text).unwrap();
            assert!(alter(create, TOPIC, &made, &changes).is_err(), "{text}");
        }
        for text in ["message.type=FIFO", "message.type", "+a=1,+a=2"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
