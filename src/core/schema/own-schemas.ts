// Validators of Writ's own JSON Schemas. The build compiles them, and they are found by the digest of their schema, so that a schema
// is never checked with the code of another one. ajv is loaded only for a schema that the build did not compile, and to list all
// errors of rejected data. Never used for schemas from a policy, which the checks of the agent handle.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, Options, SchemaObject, ValidateFunction } from 'ajv';
import { validators } from './compiled-schemas.js';

/** Options of ajv, here and at the build. Without messages: a caller that rejects data gets them from `everyMistake`. */
export const schemaOptions: Options = {
  messages: false,
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  // Tests check the schemas.
  meta: false,
  validateSchema: false,
  // `bounds`: config-bounds.ts checks values within texts. `retired`: former values are accepted and not suggested.
  keywords: ['bounds', 'retired'],
};

/** @returns the name of the validator of a schema; it is unique for the schema and the options */
export function schemaKey(schema: object): string {
  const text = JSON.stringify([schemaOptions, schema]);
  return `v${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

/** Caches of validators, because each start and each reload uses the same schemas. */
const quick = new WeakMap<object, ValidateFunction>();
const thorough = new WeakMap<object, ValidateFunction>();

/** @returns a validator that only decides whether data match */
export function validatorOf(schema: object): ValidateFunction {
  return remembered(quick, schema, () => validators[schemaKey(schema)] ?? compileNow(schema, {}));
}

/** @returns all errors of data that the validator rejected, each with the violated schema */
export function everyMistake(schema: object, data: unknown): readonly ErrorObject[] {
  const options: Options = { allErrors: true, verbose: true, messages: true };
  const validate = remembered(thorough, schema, () => compileNow(schema, options));
  validate(data);
  return validate.errors ?? [];
}

function remembered(
  known: WeakMap<object, ValidateFunction>,
  schema: object,
  make: () => ValidateFunction,
): ValidateFunction {
  const found = known.get(schema) ?? make();
  known.set(schema, found);
  return found;
}

/** Loads ajv only when needed: its import takes as long as all other imports of `writ status`. */
function compileNow(schema: object, options: Options): ValidateFunction {
  const { Ajv: Compiler } = createRequire(import.meta.url)('ajv') as { readonly Ajv: typeof Ajv };
  return new Compiler({ ...schemaOptions, ...options, code: { optimize: false } }).compile(
    schema as SchemaObject,
  );
}
