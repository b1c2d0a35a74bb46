// What a schema of the API's document says, in the words of a reader. Nothing here touches the page.

const DEEPEST = 3;
const LONGEST_PATTERN = 60;

export function resolved(api, schema) {
  return schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
}

const kindsOf = (schema) => (schema.anyOf ?? schema.oneOf ?? []).filter((each) => each.type || each.$ref || each.enum || each.const !== undefined);

// A type in a few words, with the limits that it has.
export function typeOf(api, schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  const kinds = kindsOf(schema);
  if (!schema.type && kinds.length) return kinds.map((each) => typeOf(api, each)).join(" | ") + defaultOf(schema);
  let type = schema.type ?? "anything";
  if (type === "array") type = `list of ${typeOf(api, schema.items ?? {})}`;
  if (type === "object" && schema.additionalProperties?.type) type = `object of ${schema.additionalProperties.type}`;
  if (schema.format) type += ` (${schema.format})`;
  return type + limitsOf(schema) + defaultOf(schema);
}

const defaultOf = (schema) => (schema.default == null ? "" : `, by default ${JSON.stringify(schema.default)}`);

function limitsOf(schema) {
  const least = schema.minimum ?? schema.exclusiveMinimum ?? schema.minLength ?? schema.minItems;
  const most = schema.maximum ?? schema.exclusiveMaximum ?? schema.maxLength ?? schema.maxItems;
  const range = least == null && most == null ? "" : ` ${least ?? ""}…${most ?? ""}`;
  return range + (schema.pattern?.length <= LONGEST_PATTERN ? ` ${schema.pattern}` : "");
}

// The object inside a schema: itself, what a list holds, or the one kind that is not null.
function inner(api, schema) {
  const found = resolved(api, schema);
  if (found.properties) return found;
  const kinds = kindsOf(found).filter((each) => each.type !== "null");
  if (found.items) return inner(api, found.items);
  return kinds.length === 1 ? inner(api, kinds[0]) : null;
}

// The fields of an object as rows of a table, those of objects in it under them.
export function rowsOf(api, schema, depth = 0) {
  const object = inner(api, schema);
  if (!object || depth > DEEPEST) return [];
  return Object.entries(object.properties).flatMap(([name, field]) => [
    {
      name, depth,
      isNeeded: object.required?.includes(name) ?? false,
      type: typeOf(api, field),
      description: field.description ?? "",
    },
    ...rowsOf(api, field, depth + 1),
  ]);
}

// An example of a schema: its own, or one put together from those of its fields.
export function exampleOf(api, schema) {
  const found = resolved(api, schema);
  if (found.examples?.length) return found.examples[0];
  if (found.properties) {
    const shown = Object.entries(found.properties)
      .map(([name, field]) => [name, exampleOf(api, field), found.required?.includes(name)])
      .filter(([, value, isNeeded]) => value !== undefined || isNeeded);
    return shown.length ? Object.fromEntries(shown.map(([name, value]) => [name, value ?? null])) : undefined;
  }
  if (found.items) {
    const item = exampleOf(api, found.items);
    return item === undefined ? undefined : [item];
  }
  return undefined;
}

export const paragraphs = (text) => (text ?? "").split(/\n\s*\n/).map((part) => part.replace(/\s+/g, " ").trim()).filter(Boolean);

export const bodyOf = (operation) => Object.entries(operation.requestBody?.content ?? {})[0];

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// The operation as a command of a shell; what the reader has to fill in stands in capitals.
export function curl(api, operation, origin, hasToken) {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
  const needed = (operation.parameters ?? []).filter((each) => each.in === "query" && each.required);
  const query = needed.map((each) => `${each.name}=${each.name.toUpperCase()}`).join("&");
  const isLive = Object.values(operation.responses).some((each) => each.content?.["text/event-stream"]);
  const parts = ["curl"];
  if (isLive) parts.push("-N");
  if (operation.method !== "GET") parts.push("-X", operation.method);
  parts.push(quoted(`${origin}${path}${query && `?${query}`}`));
  if (hasToken) parts.push("-H", '"Authorization: Bearer $POCKETBUILD_TOKEN"');
  const body = bodyOf(operation);
  if (body) {
    const [kind, { schema }] = body;
    parts.push("-H", quoted(`content-type: ${kind}`));
    parts.push(kind.endsWith("json") ? `-d ${quoted(JSON.stringify(exampleOf(api, schema) ?? {}))}` : "--data-binary @FILE");
  }
  return parts.join(" ");
}
