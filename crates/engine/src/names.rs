//! Names of a program's inputs. The tables of a file have none; the text of its intermediate
//! representation does, in the signature of each function: as an attribute `ttir.name = "x"`
//! (PyTorch) or as the argument's location `loc("x")` (JAX), which can be an alias `loc(#loc3)`.
//!
//! The text is optional: where it is not as expected, an argument has no name.

use std::collections::HashMap;

/// For each argument of a function its name, if it has one. Nothing if the function is not found.
pub(crate) fn arguments(text: &str, function: &str) -> Vec<Option<String>> {
    let Some(signature) = signature(text, function) else { return Vec::new() };
    let arguments = arguments_of(signature);
    let aliases =
        if arguments.iter().any(|argument| argument.contains("loc(#")) { aliases(text) } else { HashMap::new() };
    arguments.iter().map(|argument| name(argument, &aliases)).collect()
}

/// The text after the parenthesis that opens a function's arguments.
fn signature<'t>(text: &'t str, function: &str) -> Option<&'t str> {
    text.match_indices("func.func").find_map(|(at, keyword)| {
        let rest = &text[at + keyword.len()..];
        let named = rest.trim_start().trim_start_matches("public").trim_start_matches("private").trim_start();
        named.strip_prefix('@')?.strip_prefix(function)?.strip_prefix('(')
    })
}

/// The arguments before the parenthesis that closes them. Brackets nest, text in quotes does not
/// count, and an arrow is not a bracket.
fn arguments_of(signature: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    let (mut quoted, mut before) = (false, '(');
    for (at, c) in signature.char_indices() {
        match c {
            '"' if before != '\\' => quoted = !quoted,
            _ if quoted => {}
            '(' | '<' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            ')' if depth == 0 => {
                arguments.push(signature[start..at].trim());
                break;
            }
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                arguments.push(signature[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// Locations that have a name of their own: `#loc3 = loc("x")`.
fn aliases(text: &str) -> HashMap<&str, &str> {
    let lines = text.lines().filter(|line| line.starts_with("#loc"));
    lines.filter_map(|line| line.split_once('=').map(|(alias, is)| (alias.trim(), is.trim()))).collect()
}

fn name(argument: &str, aliases: &HashMap<&str, &str>) -> Option<String> {
    if let Some((_, attribute)) = argument.split_once("ttir.name = \"") {
        return attribute.split_once('"').map(|(name, _)| name.to_owned());
    }
    let location = &argument[argument.rfind("loc(")?..];
    let inner = location.strip_prefix("loc(")?.strip_suffix(')')?;
    let location = if inner.starts_with('#') { *aliases.get(inner)? } else { location };
    // A file and a line begin with quotes, too, but do not end there.
    let name = location.strip_prefix("loc(\"")?.strip_suffix("\")")?;
    (!name.is_empty() && !name.contains('"')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"
#loc1 = loc("scale")
#loc2 = loc("file.py":3:4)
module {
  func.func private @main_part(%arg0: tensor<4xf32>) -> tensor<4xf32> { return }
  func.func public @main(%arg0: tensor<2x4xbf16, #layout> {a = b, c = #x<d, e>} loc("x"), %arg1: tensor<4xbf16, #ttnn.l<(d0) -> (0, d0), <1x1>>> loc(#loc1), %arg2: tensor<i32> loc(#loc2), %arg3: tensor<1xf32> {ttir.name = "layer.0, \"w\""} loc("p"(#loc1)), %arg4: tensor<1xf32>) -> (tensor<4xf32>) { return }
}
"##;

    #[test]
    fn arguments_have_the_names_of_their_attributes_or_locations() {
        let names = arguments(TEXT, "main");
        let expected = [Some("x"), Some("scale"), None, Some("layer.0, \\"), None];
        assert_eq!(names.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_name_that_begins_like_another_is_not_taken_for_it() {
        assert_eq!(arguments(TEXT, "main_part"), [None]);
        assert!(arguments(TEXT, "mai").is_empty());
        assert!(arguments("func.func @f(", "f").is_empty());
    }
}
