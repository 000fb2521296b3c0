// Validators of JSON Schemas that are ours: those that the build has compiled, found by the digest of what they were made
// of, so that a schema is never judged by another one's code. ajv itself is loaded where they do not do: for a schema that
// the build did not know, and to name every mistake of data that one of them has refused. Never sees a schema that somebody
// else wrote: those are the agent's checks'.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, Options, SchemaObject, ValidateFunction } from 'ajv';
import { validators } from './compiled-schemas.js';

/** How ajv compiles them: here and at the build. No words: who refuses asks `everyMistake` for them. */
export const schemaOptions: Options = {
  messages: false,
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  // The schemas are ours, and held by tests.
  meta: false,
  validateSchema: false,
  // What a text hides from a schema is config-bounds' to judge; words of before are taken, and not offered.
  keywords: ['bounds', 'retired'],
};

/** @returns the name of a schema's validator: another schema, and other options, have another one */
export function schemaKey(schema: object): string {
  const text = JSON.stringify([schemaOptions, schema]);
  return `v${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

/** A schema is asked at every start and every reload: what was found or made for it is kept as long as it is. */
const quick = new WeakMap<object, ValidateFunction>();
const thorough = new WeakMap<object, ValidateFunction>();

/** Says whether data fit, and no more. */
export function validatorOf(schema: object): ValidateFunction {
  return remembered(quick, schema, () => validators[schemaKey(schema)] ?? compileNow(schema, {}));
}

/** @returns every mistake of data that its validator has refused, each with the schema that it breaks */
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

/** Loaded only here: importing ajv takes as long as all else that `writ status` imports. */
function compileNow(schema: object, options: Options): ValidateFunction {
  const { Ajv: Compiler } = createRequire(import.meta.url)('ajv') as { readonly Ajv: typeof Ajv };
  return new Compiler({ ...schemaOptions, ...options, code: { optimize: false } }).compile(
    schema as SchemaObject,
  );
}
