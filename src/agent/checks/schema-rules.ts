// Compiles a JSON Schema for policy files, and validates data with it. Pure. Fetches no other schema, and rejects an unknown
// keyword, because it is likely a typing error.
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

export interface SchemaProblem {
  /** JSON pointer into the data; empty for the whole document. */
  readonly pointer: string;
  readonly text: string;
}

export type SchemaFormats = Readonly<Record<string, (text: string) => boolean>>;

export type PolicySchema =
  | { readonly kind: 'schema'; readonly judge: (data: unknown) => readonly SchemaProblem[] }
  | { readonly kind: 'unusable'; readonly reason: string };

/**
 * Compiles a JSON Schema. Throws nothing.
 * @param schema of draft 7 if its `$schema` contains `draft-07`, otherwise of draft 2020-12; an object or a boolean
 * @param formats the only values of `format` that the schema may use
 * @returns `schema` with a function that validates data: each problem with its pointer, in the order of the validator, and an
 *   empty list for valid data. `unusable` with the reason for any other value, an unknown keyword or format, or a reference that
 *   the schema does not contain
 */
export function compilePolicySchema(schema: unknown, formats: SchemaFormats): PolicySchema {
  if (
    typeof schema !== 'boolean' &&
    (typeof schema !== 'object' || schema === null || Array.isArray(schema))
  ) {
    return { kind: 'unusable', reason: 'it is not a JSON Schema' };
  }
  try {
    const validate = createCompiler(schema, formats).compile(schema);
    return { kind: 'schema', judge: (data) => judge(validate, data) };
  } catch (error) {
    return { kind: 'unusable', reason: error instanceof Error ? error.message.slice(0, 500) : String(error) };
  }
}

function createCompiler(schema: object | boolean, formats: SchemaFormats): Ajv | Ajv2020 {
  // Strict about keywords and formats. Not strict about types, because a schema may use `properties` without `type`.
  const options: Options = {
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictTuples: false,
    logger: false,
  };
  const draft = typeof schema === 'object' && '$schema' in schema ? String(schema.$schema) : '';
  const all: Options = { ...options, formats: { ...formats } };
  return draft.includes('draft-07') ? new Ajv(all) : new Ajv2020(all);
}

function judge(validate: ValidateFunction, data: unknown): SchemaProblem[] {
  if (validate(data)) return [];
  return (validate.errors ?? []).map((error) => ({ pointer: error.instancePath, text: formatError(error) }));
}

function formatError({ message = 'does not match the schema', params, keyword }: ErrorObject): string {
  const named = params['additionalProperty'] ?? params['unevaluatedProperty'] ?? params['propertyName'];
  if (typeof named === 'string') return `${message}: ${JSON.stringify(named.slice(0, 80))}`;
  if (keyword === 'enum') return `${message}: ${JSON.stringify(params['allowedValues']).slice(0, 200)}`;
  if (keyword === 'const') return `${message}: ${JSON.stringify(params['allowedValue']).slice(0, 80)}`;
  return message;
}
