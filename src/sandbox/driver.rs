//! The text of the driver, the module that runs inside the child.
//!
//! Pure, and nothing here fails. Every path and value is embedded as a JSON literal in which U+2028 and U+2029 are
//! escaped too, so it is one literal for every reader of JavaScript. Each project file is imported by a literal dynamic
//! `import("…")`, so that the bundler can take it in; static imports are the trusted modules alone, and they are all
//! evaluated before the first project file. Source of the rules: `contract/sandbox.md`, "The driver".

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Where the trusted steps come from: absolute paths of modules.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustedModules {
    /// Exports `collectEntities`.
    pub collect: String,
    /// Exports `resolveAttrRefs`.
    pub resolve: String,
    /// Exports `encodeEntitySet`.
    pub entity_wire_codec: String,
    /// Exports `getProvenance`.
    pub provenance: String,
    /// Exports `setBuildParams`.
    pub params: String,
    /// Exports `classifyChildError`.
    pub child_errors: String,
    /// Sallyport's own: exports `createChannel`.
    pub channel: String,
    /// Sallyport's own: exports `readData`.
    pub data: String,
}

/// A value that parameters can have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A string.
    Text(String),
    /// A number.
    Number(serde_json::Number),
    /// A boolean.
    Boolean(bool),
}

/// What the driver is to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DriverTask {
    /// Import files together, and send the entities they declare.
    Run {
        /// Absolute paths, in this order.
        files: Vec<String>,
        /// The absolute build root.
        build_root: String,
        /// Bound before the first import.
        #[serde(default)]
        params: BTreeMap<String, Parameter>,
    },
    /// Import a file and send its configuration: `default`, else `config`, else the namespace.
    Config {
        /// The absolute path.
        file: String,
        /// Bound before the import.
        #[serde(default)]
        params: BTreeMap<String, Parameter>,
    },
    /// Import a file, call an export with arguments, and send what it gives.
    Call {
        /// The absolute path.
        file: String,
        /// The name of the export.
        export: String,
        /// The arguments as JSON, checked to be data.
        arguments: serde_json::Value,
        /// Bound before the import.
        #[serde(default)]
        params: BTreeMap<String, Parameter>,
    },
}

/// A value as a literal of JavaScript.
fn literal(value: &impl Serialize) -> String {
    // Strings, numbers, booleans and objects of these always have a JSON form.
    serde_json::to_string(value).unwrap_or_default().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// The text of the driver for a task.
#[must_use]
pub fn generate_driver(task: &DriverTask, modules: &TrustedModules) -> String {
    match task {
        DriverTask::Run { files, build_root, params } => generate_run(files, build_root, params, modules),
        DriverTask::Config { file, params } => generate_value(
            file,
            params,
            "const value = hasOwn(namespace, 'default') ? namespace.default : hasOwn(namespace, 'config') ? namespace.config : { ...namespace };",
            modules,
        ),
        DriverTask::Call { file, export, arguments, params } => {
            let call = format!(
                "const exported = hasOwn(namespace, {name}) ? namespace[{name}] : undefined;\n    if (typeof exported !== 'function') throw new TypeError({missing});\n    awaited = 'the call gave its result';\n    const value = await apply(exported, undefined, parse({arguments}));",
                name = literal(export),
                missing = literal(&format!("{file} has no function as its export \"{export}\"")),
                // As text, since a literal of JavaScript gives the key `__proto__` another meaning.
                arguments = literal(&arguments.to_string()),
            );
            generate_value(file, params, &call, modules)
        }
    }
}

/// The imports and the beginning that every driver has.
fn beginning(modules: &TrustedModules, params: &BTreeMap<String, Parameter>, imports: &[(&str, &str)]) -> String {
    let mut text = String::new();
    // The channel comes first: it takes hold of everything that sending needs before anything else is evaluated.
    for (name, module) in [("createChannel", modules.channel.as_str()), ("setBuildParams", &modules.params)]
        .into_iter()
        .chain(imports.iter().copied())
    {
        let _ = writeln!(text, "import {{ {name} }} from {};", literal(&module));
    }
    text.push_str("\nconst channel = createChannel();\n");
    let checked = imports.iter().copied().chain([("setBuildParams", modules.params.as_str())]);
    for (name, module) in checked {
        let payload = format!("{{ kind: \"unusable\", module: {}, name: {} }}", literal(&module), literal(&name));
        let _ = writeln!(text, "if (typeof {name} !== \"function\") {{ channel.send({payload}); channel.exit(1); }}");
    }
    let _ = writeln!(text, "setBuildParams({});", literal(params));
    text
}

fn generate_run(
    files: &[String],
    build_root: &str,
    params: &BTreeMap<String, Parameter>,
    modules: &TrustedModules,
) -> String {
    let mut text = beginning(
        modules,
        params,
        &[
            ("collectEntities", &modules.collect),
            ("resolveAttrRefs", &modules.resolve),
            ("encodeEntitySet", &modules.entity_wire_codec),
            ("getProvenance", &modules.provenance),
            ("classifyChildError", &modules.child_errors),
        ],
    );
    let _ = write!(
        text,
        r#"
const BUILD_ROOT = {build_root};
// Taken before project code runs, which may patch iterators and methods.
const call = Function.prototype.call;
const forEachEntity = call.bind(Map.prototype.forEach);
const modules = [];
const errors = [];
let inFlight = "";

const note = (file, error, type) => {{
  errors[errors.length] = classifyChildError(file, error, type).toJSON();
}};
const fileOf = (error) => (error !== null && typeof error === "object" && typeof error.file === "string" ? error.file : "");

// Turns what was imported into the one payload: collect, note where each came from, resolve, encode.
const finish = () => {{
  const nothing = {{ entities: [] }};
  const provenanceByName = {{ __proto__: null }};
  let entities;
  try {{
    entities = collectEntities(modules, BUILD_ROOT);
  }} catch (error) {{
    note(fileOf(error), error, "resolution");
    return {{ kind: "run", entitySet: nothing, errors, provenanceByName }};
  }}
  try {{
    forEachEntity(entities, (entity, name) => {{
      const provenance = getProvenance(entity);
      if (provenance && provenance.sourceFile) provenanceByName[name] = provenance.sourceFile;
    }});
    resolveAttrRefs(entities);
  }} catch (error) {{
    note(fileOf(error), error, "resolution");
  }}
  try {{
    return {{ kind: "run", entitySet: encodeEntitySet(entities), errors, provenanceByName }};
  }} catch (error) {{
    note("", error, "resolution");
    return {{ kind: "run", entitySet: nothing, errors, provenanceByName }};
  }}
}};

channel.onIncomplete(() => {{
  const uncaught = channel.uncaughtError();
  note(inFlight, uncaught ? uncaught.error : channel.endedBefore(inFlight === "" ? "the run was complete" : "the file was imported"), "import");
  return {{ ...finish(), incomplete: true }};
}});

async function main() {{
  channel.requireRestriction();
"#,
        build_root = literal(&build_root),
    );
    for file in files {
        let file = literal(file);
        let _ = write!(
            text,
            "  try {{
    inFlight = {file};
    const exports = await import({file});
    modules[modules.length] = {{ file: {file}, exports }};
  }} catch (error) {{
    note({file}, error);
  }}
"
        );
    }
    text.push_str(
        r#"  inFlight = "";
  channel.send(finish());
}

main().catch((error) => {
  note("", error);
  channel.send({ kind: "run", entitySet: { entities: [] }, errors, provenanceByName: {}, fatal: true });
});
"#,
    );
    text
}

fn generate_value(
    file: &str,
    params: &BTreeMap<String, Parameter>,
    evaluation: &str,
    modules: &TrustedModules,
) -> String {
    let mut text =
        beginning(modules, params, &[("readData", &modules.data), ("classifyChildError", &modules.child_errors)]);
    let _ = write!(
        text,
        r#"
const FILE = {file};
// Taken before project code runs, which may patch it.
const {{ apply }} = Reflect;
const {{ hasOwn }} = Object;
const {{ parse }} = JSON;
let awaited = "the file was evaluated";
const failed = (error) => ({{ kind: "failed", error: classifyChildError(FILE, error).toJSON() }});

channel.onIncomplete(() => {{
  const uncaught = channel.uncaughtError();
  const error = uncaught ? uncaught.error : channel.endedBefore(awaited);
  return {{ ...failed(error), incomplete: true }};
}});

async function main() {{
  try {{
    channel.requireRestriction();
    const namespace = await import({file});
    {evaluation}
    const {{ data, nonData }} = readData(value);
    channel.send(nonData.length > 0 ? {{ kind: "refused", list: nonData }} : {{ kind: "value", value: data }});
  }} catch (error) {{
    channel.send(failed(error));
  }}
}}

main();
"#,
        file = literal(&file),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules() -> TrustedModules {
        let module = |name: &str| format!("/trusted/{name}.js");
        TrustedModules {
            collect: module("collect"),
            resolve: module("resolve"),
            entity_wire_codec: module("codec"),
            provenance: module("provenance"),
            params: module("params"),
            child_errors: module("child-errors"),
            channel: module("channel"),
            data: module("data"),
        }
    }

    fn run(files: &[&str], params: BTreeMap<String, Parameter>) -> String {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        generate_driver(&DriverTask::Run { files, build_root: "/root".to_owned(), params }, &modules())
    }

    #[test]
    fn parameters_are_bound_in_the_form_that_callers_look_for() {
        let text = run(&["/root/a.ts"], BTreeMap::new());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&r#"import { setBuildParams } from "/trusted/params.js";"#));
        let bound = lines.iter().position(|line| *line == "setBuildParams({});").unwrap();
        let imported = lines.iter().position(|line| line.contains(r#"await import("/root/a.ts")"#)).unwrap();
        assert!(bound < imported);
        let params = BTreeMap::from([
            ("a".to_owned(), Parameter::Text("\"\u{2028}".to_owned())),
            ("b".to_owned(), Parameter::Boolean(true)),
        ]);
        assert!(run(&[], params).contains("setBuildParams({\"a\":\"\\\"\\u2028\",\"b\":true});"));
    }

    #[test]
    fn paths_are_literals_whatever_is_in_them() {
        let text = run(&["/root/\"; evil(); \"\n\u{2029}\\.ts"], BTreeMap::new());
        assert!(text.contains(r#"await import("/root/\"; evil(); \"\n\u2029\\.ts")"#));
    }
}
