// Compiles the options of one driver as the configuration does: its own schemas without unknown keys.
import { Ajv, type ValidateFunction } from 'ajv';
import type { DriverKind } from '../../../src/workers/contract/driver.js';

/** @returns a validator that accepts exactly the options of this driver */
export function compileOptions({ name, properties, required }: DriverKind): ValidateFunction {
  // Accepts `bounds` as the configuration does, which checks the bounds of durations itself.
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, keywords: ['bounds'] });
  return ajv.compile({
    type: 'object',
    properties,
    required: [name, ...required],
    additionalProperties: false,
  });
}
