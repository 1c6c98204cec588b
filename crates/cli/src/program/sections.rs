//! Reads a program file of which something has the wrong form part by part, so that a mistake in
//! one buffer does not hide those of the others.

use super::schema::{Broken, Buffers, CommonArgs, ProgramFile, Tables};
use super::source::Source;
use super::wrong::Wrong;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The keys of a program file, as its structure has them.
const KEYS: [&str; 10] =
    ["name", "workers", "buffers", "cb", "semaphores", "roles", "common_args", "launch", "queue", "allow"];

/// Reads what can be read; all else is kept as wrong. `None` for a text that is no TOML: then
/// nothing of it can be relied upon.
pub fn read(source: &Source, wrong: &mut Wrong) -> Option<ProgramFile> {
    let (document, errors) = DeTable::parse_recoverable(source.text());
    if !errors.is_empty() {
        errors.iter().for_each(|error| wrong.add(source.toml_error(error)));
        return None;
    }
    let mut reader = Reader { source, wrong };
    let mut file = ProgramFile {
        name: Spanned::new(0..0, "program".to_owned()),
        workers: None,
        buffers: Buffers::default(),
        cb: Vec::new(),
        semaphores: Vec::new(),
        roles: Vec::new(),
        common_args: CommonArgs::default(),
        launch: Vec::new(),
        queue: Vec::new(),
        allow: Vec::new(),
        broken: Broken::default(),
    };
    let document = document.into_inner();
    for required in ["name", "roles"] {
        if !document.contains_key(required) {
            reader.wrong.add(source.error(0..0, format!("missing field `{required}`")));
            file.broken.roles |= required == "roles";
        }
    }
    for (key, value) in document {
        match key.get_ref().as_ref() {
            "name" => file.name = reader.item(value).unwrap_or(file.name),
            "workers" => file.workers = reader.item(value),
            "buffers" => (file.buffers, file.broken.buffers) = reader.buffers(value),
            "cb" => (file.cb, file.broken.cb) = reader.list(value),
            "semaphores" => (file.semaphores, file.broken.semaphores) = reader.list(value),
            "roles" => (file.roles, file.broken.roles) = reader.list(value),
            "launch" => (file.launch, file.broken.launches) = reader.list(value),
            "queue" => (file.queue, file.broken.steps) = reader.list(value),
            "allow" => file.allow = reader.list(value).0,
            "common_args" => file.common_args = reader.item(value).unwrap_or_default(),
            unknown => {
                let keys = KEYS.map(|key| format!("`{key}`")).join(", ");
                let message = format!("unknown field `{unknown}`, expected one of {keys}");
                reader.wrong.add(source.error(key.span(), message));
            }
        }
    }
    Some(file)
}

struct Reader<'a> {
    source: &'a Source,
    wrong: &'a mut Wrong,
}

impl Reader<'_> {
    fn item<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'_>>) -> Option<T> {
        let read = T::deserialize(ValueDeserializer::from(value));
        self.wrong.keep(read.map_err(|error| self.source.toml_error(&error)))
    }

    /// The items of an array that can be read, and whether there are others.
    fn list<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'_>>) -> (Vec<T>, bool) {
        if !value.get_ref().is_array() {
            // The message of the structure: what was found and what was expected.
            return (self.item(value).unwrap_or_default(), true);
        }
        let DeValue::Array(items) = value.into_inner() else { return (Vec::new(), true) };
        let read: Vec<Option<T>> = items.into_iter().map(|item| self.item(item)).collect();
        let broken = read.iter().any(Option::is_none);
        (read.into_iter().flatten().collect(), broken)
    }

    /// The buffers that can be read, in the order of the file, and the names of the others.
    fn buffers(&mut self, value: Spanned<DeValue<'_>>) -> (Buffers, Vec<String>) {
        if !value.get_ref().is_table() {
            return (self.item(value).unwrap_or_default(), Vec::new());
        }
        let DeValue::Table(table) = value.into_inner() else { return (Buffers::default(), Vec::new()) };
        let (mut buffers, mut broken) = (Vec::new(), Vec::new());
        for (name, decl) in table {
            let name = Spanned::new(name.span(), name.into_inner().into_owned());
            match self.item(decl) {
                Some(decl) => buffers.push((name, decl)),
                None => broken.push(name.into_inner()),
            }
        }
        buffers.sort_by_key(|(name, _): &(Spanned<String>, _)| name.span().start);
        (Tables(buffers), broken)
    }
}
