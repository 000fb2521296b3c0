// Validators of JSON Schemas that are ours: those that the build has compiled, found by the digest of what they were made
// of, so that a schema is never judged by another one's code. One that the build did not know is compiled here, by the same
// ajv under the same options. Never sees a schema that somebody else wrote: those are the agent's checks'.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Ajv, Options, SchemaObject, ValidateFunction } from 'ajv';
import { validators as configValidators } from './compiled-config.js';
import { validators as stateValidators } from './compiled-state.js';

/** `config`: every mistake of a file that a person wrote; `state`: the first one, of a file of ours. */
export type SchemaUse = 'config' | 'state';

const common: Options = { strict: true, allowUnionTypes: true, meta: false, validateSchema: false };

/** How ajv compiles them: here and at the build. */
export const schemaOptions: Readonly<Record<SchemaUse, Options>> = {
  config: {
    ...common,
    allErrors: true,
    strictRequired: false,
    verbose: true,
    // What a text hides from a schema is config-bounds' to judge; words of before are taken, and not offered.
    keywords: ['bounds', 'retired'],
  },
  state: common,
};

const builtIn = { config: configValidators, state: stateValidators };

/** A schema is asked at every start and every reload: what was found or made for it is kept as long as it is. */
const known = new WeakMap<object, ValidateFunction>();

/** @returns the name of a schema's validator: another schema, and other options, have another one */
export function schemaKey(use: SchemaUse, schema: object): string {
  const text = JSON.stringify([schemaOptions[use], schema]);
  return `v${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

/** @param owner the schema, or what it is made from: the same object has the same schema */
export function validatorOf(
  use: SchemaUse,
  owner: object,
  schema: () => object = () => owner,
): ValidateFunction {
  const found = known.get(owner);
  if (found !== undefined) return found;
  const wanted = schema();
  const validate = builtIn[use][schemaKey(use, wanted)] ?? compileNow(use, wanted);
  known.set(owner, validate);
  return validate;
}

/** Loaded only here: importing ajv takes as long as all else that `writ status` imports. */
function compileNow(use: SchemaUse, schema: object): ValidateFunction {
  const { Ajv: Compiler } = createRequire(import.meta.url)('ajv') as { readonly Ajv: typeof Ajv };
  const options: Options = { ...schemaOptions[use], code: { optimize: false } };
  return new Compiler(options).compile(schema as SchemaObject);
}
