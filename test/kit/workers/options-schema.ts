// The options of one driver as the configuration judges them: its own schemas, and no key that it does not know.
import { Ajv, type ValidateFunction } from 'ajv';
import type { DriverKind } from '../../../src/workers/contract/driver.js';

/** @returns a validator that accepts exactly the options of this driver */
export function compileOptions({ name, properties, required }: DriverKind): ValidateFunction {
  // As the configuration does, which judges the bounds of durations itself.
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, keywords: ['bounds'] });
  return ajv.compile({
    type: 'object',
    properties,
    required: [name, ...required],
    additionalProperties: false,
  });
}
